"""Tell what a step has read and written, while it runs as before: around its work, and only if somebody wants to know."""

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from structlog.contextvars import bound_contextvars

from lockstep import lake
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.ledger.entries import Entry
from lockstep.lineage.written import Written, after, offsets, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

Item = TypeVar("Item", Contract, View)
Work = Callable[["SparkSession", "Settings", Item, str], Entry | None]
log = logging.getLogger(__name__)
# Each of them says where events go. See docs/operations/lineage.md.
_VARIABLES = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT__TYPE")
# A receiver that does not answer holds up one step, for as long as its transport tries. The steps after it do not try.
_SILENCE_SECONDS = 60.0
_silent_until = 0.0


@dataclass(frozen=True)
class Step:
    """One run of a step that has ended.

    Args:
        job: its name, such as ``ingest.orders``.
        run_id: of Airflow's DAG run, or of the command.
        reads: the tables and topics that it reads.
        error: why it has failed; empty: it has not.
    """

    job: str
    run_id: str
    reads: tuple[str, ...]
    started: datetime
    ended: datetime
    written: tuple[Written, ...]
    error: str = ""


def traced(
    job: str, work: "Work[Item]", reads: Callable[[Item], list[str]], writes: Callable[[Item], list[str]]
) -> "Work[Item]":
    """The work, which also tells what it has read and written for each item: to who wants to know, and in the log."""

    def traced_work(spark: "SparkSession", settings: "Settings", item: Item, run_id: str) -> Entry | None:
        with step(settings, f"{job}.{item.name}", run_id, reads(item), writes(item)):
            entry = work(spark, settings, item, run_id)
        if entry:
            with bound_contextvars(offsets=offsets(r for r in entry.ranges if r.size)):
                log.info("%s: version %d with %d rows", entry.table, entry.version, entry.rows)
        return entry

    return traced_work


@contextmanager
def step(settings: "Settings", job: str, run_id: str, reads: Iterable[str], writes: Iterable[str]) -> Iterator[None]:
    """Tell what is read and written within the block, after it. A block that writes nothing, and does not fail, is not told.

    Args:
        job: the name of the step.
        reads, writes: the tables (``layer.name``) and topics (``kafka.name``) that the step reads, and may write.
    """
    if not any(os.environ.get(name) for name in _VARIABLES):
        yield
        return
    started, before = datetime.now(UTC), {table: lake.newest_version(settings, table) for table in writes}
    error = ""
    try:
        yield
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        found = (written(settings, table, run_id, after(version)) for table, version in before.items())
        facts = tuple(one for one in found if one)
        if facts or error:
            _tell(settings, Step(job, run_id, tuple(reads), started, datetime.now(UTC), facts, error))


def _tell(settings: "Settings", done: Step) -> None:
    global _silent_until
    from lockstep.lineage import openlineage

    if time.monotonic() >= _silent_until and not openlineage.send(settings, done):
        _silent_until = time.monotonic() + _SILENCE_SECONDS
