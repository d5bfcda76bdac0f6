"""What the tasks of the DAGs do: one function each, whose arguments and results fit into an XCom.

Each opens its own client of the Spark server. A stream that fails does not stop the others: all are tried, then the step
fails and names each. Every step can run again, and finds nothing to do when nothing is new.
"""

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.ledger.entries import Entry
    from lockstep.settings import Settings

# Two at a time keep two cores busy; more would only queue in the server, behind live queries.
AT_ONCE = 2
Item = TypeVar("Item", Contract, View)
Work = Callable[["SparkSession", "Settings", Item, str], "Entry | None"]
log = logging.getLogger(__name__)


class StepFailed(LockstepError):
    """Some of the streams or views of a step failed; the message has each with its reason."""


def ingest(kind: str, run_id: str) -> dict[str, int]:
    """Take what the topics of a kind (``events`` or ``changes``) have into bronze; rows by stream, where any were new."""
    from lockstep.ingest.bronze import behind
    from lockstep.ingest.bronze import ingest as work

    contracts = behind(configuration.load(), (c for c in CONTRACTS.values() if c.kind == kind))
    return _each("ingest", work, contracts, run_id)


def unrefined() -> list[str]:
    """The streams of which bronze has more than silver, whoever brought it there."""
    from lockstep.refine.silver import behind

    settings = configuration.load()
    return [name for name, contract in CONTRACTS.items() if behind(settings, contract)]


def refine(run_id: str) -> dict[str, int]:
    """Bring silver up to bronze; rows by stream, where any were new."""
    from lockstep.refine.silver import refine as work

    return _each("refine", work, [CONTRACTS[name] for name in unrefined()], run_id)


def roll_up(run_id: str) -> dict[str, int]:
    """Bring the views' gold up to silver, where silver has passed its gate; rows by view, where any were new."""
    from lockstep.batch.rollup import roll_up as work
    from lockstep.definition.tables import sources
    from lockstep.quality.gate import is_open

    settings = configuration.load()
    ready = []
    for view in chosen(settings.views):
        shut = [table for table in sources(view) if not is_open(settings, table)]
        if shut:
            log.warning("%s waits: %s has not passed its gate", view.name, ", ".join(shut))
        else:
            ready.append(view)
    return _each("roll_up", work, ready, run_id)


def gate(layer: str, run_id: str) -> dict[str, int]:
    """Hold what is new in a layer (``silver`` or ``gold``) against its suites; checks made by table.

    The data docs are built again when anything was looked at; readers of the merged answers follow a gold that has passed.
    """
    from lockstep.quality.gate import gate as work
    from lockstep.quality.gate import is_open
    from lockstep.quality.suites import gated

    settings = configuration.load()
    tables = [t for t in gated(settings) if t.startswith(f"{layer}.") and not is_open(settings, t)]
    if not tables:
        return {}
    try:
        with connect(settings, "gate") as spark:
            outcomes = work(spark, settings, tables, run_id)
            if layer == "gold":
                _publish(spark, settings)
    finally:
        _data_docs(settings)
    return {outcome.table: outcome.checks for outcome in outcomes}


def _publish(spark: "SparkSession", settings: "Settings") -> None:
    from lockstep.serving.merged import publish

    publish(spark, settings, chosen(settings.views))


def _data_docs(settings: "Settings") -> None:
    from lockstep.quality.docs import build

    log.info("Data docs: %s", build(settings))


def rebuild_day(start: datetime, end: datetime, run_id: str) -> list[str]:
    """Rebuild every view and mart for the days in ``[start, end)`` (UTC), and name what was built.

    Gold is left to the next gate, which takes all that is new in one go: a gate a day would double the time of a backfill.

    Raises:
        IntervalHeld: a replay is at work on one of the days; the message names it.
    """
    from lockstep.batch.rollup import rebuild
    from lockstep.control.intervals import backfilling, of_gold
    from lockstep.definition.tables import gold_of
    from lockstep.marts import build

    settings = configuration.load()
    views = list(chosen(settings.views))
    spans = {gold_of(view): of_gold(view, start, end) for view in views}
    with backfilling(settings, run_id, spans), connect(settings, "rollup") as spark:
        entries = [rebuild(spark, settings, view, start, end, run_id) for view in views]
        return [entry.table for entry in entries if entry] + build(spark, settings, start, end, run_id)


def replay_plan(params: dict[str, Any], run_id: str, by: str) -> str:
    """Open the replay that a form asks for, and hold its intervals; its id, the same for the same run."""
    from lockstep.replay.parse import parse
    from lockstep.replay.run import identify, open_replay

    request = parse(params)
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        return open_replay(spark, settings, request, by, run_id, identify(request, run_id)).id


def replay_shadow(replay: str, run_id: str) -> dict[str, Any]:
    """Compute the replay's shadow; how long that took, and the code that did it."""
    from lockstep.replay.run import compute

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        shadowed = compute(spark, settings, replay, run_id)
    return {"seconds": shadowed.seconds, "code_version": shadowed.code_version}


def replay_diff(replay: str, run_id: str) -> str:
    """Compare the replay's shadow with what it would replace; the diff as Markdown, for whoever decides."""
    from lockstep.replay.report import diff_as_markdown
    from lockstep.replay.run import compare

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        return diff_as_markdown(replay, compare(spark, settings, replay, run_id))


def replay_approve(replay: str, run_id: str, by: str) -> None:
    """Approve the replay as a person."""
    from lockstep.replay.run import approve

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        approve(spark, settings, replay, run_id, by)


def replay_approve_by_rule(replay: str, run_id: str) -> None:
    """Approve the replay if the rule of its request allows the diff."""
    from lockstep.replay.run import approve_by_rule

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        approve_by_rule(spark, settings, replay, run_id)


def replay_promote(replay: str, run_id: str) -> dict[str, int]:
    """Promote the replay; by table, the version that did it."""
    from lockstep.replay.run import promote

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        return dict(promote(spark, settings, replay, run_id).versions)


def replay_discard(replay: str, run_id: str, by: str = "airflow") -> None:
    """Give the replay up."""
    from lockstep.replay.run import discard

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        discard(spark, settings, replay, run_id, by)


def replay_undo(replay: str, run_id: str, by: str) -> dict[str, Any]:
    """Undo the replay; the versions that did it, and how many windows stay by view."""
    from lockstep.replay.run import undo

    settings = configuration.load()
    with connect(settings, "replay") as spark:
        return undo(spark, settings, replay, run_id, by).model_dump(mode="json", include={"versions", "kept"})


def reconcile(run_id: str) -> dict[str, str]:
    """Compare both layers; the verdict by view.

    Raises:
        StepFailed: a window differs for no known reason.
    """
    from lockstep.reconcile.run import reconcile as work

    settings = configuration.load()
    with connect(settings, "reconcile") as spark:
        reports = work(spark, settings, chosen(settings.views), run_id)
        _publish(spark, settings)
    wrong = [f"{r.view}: {r.unexplained} of {r.windows} windows, such as {r.sample}" for r in reports if r.unexplained]
    if wrong:
        raise StepFailed("Live and batch differ, and no cause is known:\n  " + "\n  ".join(wrong))
    return {report.view: f"{report.windows} windows {report.verdict}" for report in reports}


def maintain(run_id: str) -> list[str]:
    """Compact, vacuum and trim what no reader needs any more; one line for each thing that was done."""
    from lockstep.lake import tables
    from lockstep.maintain import maintain as work

    settings = configuration.load()
    with connect(settings, "maintain") as spark:
        return [str(done) for done in work(spark, settings, tables(settings), run_id)]


def _each(name: str, work: "Work[Item]", items: Iterable[Item], run_id: str) -> dict[str, int]:
    """Do the work for each item, two at a time, each thread in a session of its own; then tell of the failures."""
    settings = configuration.load()
    queue = list(items)
    rows: dict[str, int] = {}
    failed: dict[str, Exception] = {}

    def drain() -> None:
        with connect(settings, name) as spark:
            while queue:
                item = queue.pop(0)
                try:
                    entry = work(spark, settings, item, run_id)
                # Whatever one stream throws, the others go on; it is raised below.
                except Exception as error:
                    log.exception("%s of %s failed", name, item.name)
                    failed[item.name] = error
                else:
                    if entry:
                        rows[item.name] = entry.rows

    _in_threads(drain, min(AT_ONCE, len(queue)))
    if failed:
        reasons = "\n  ".join(f"{stream}: {error}" for stream, error in failed.items())
        raise StepFailed(f"{name}: {len(failed)} failed, the others are done:\n  {reasons}")
    return rows


def _in_threads(function: Callable[[], Any], count: int) -> None:
    with ThreadPoolExecutor(max(count, 1)) as pool:
        for future in [pool.submit(function) for _ in range(count)]:
            future.result()
