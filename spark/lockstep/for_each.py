"""Work on several streams or views at a time: a thread with a Spark session for each core."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import TYPE_CHECKING, TypeVar

from structlog.contextvars import bound_contextvars

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.errors import Failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

Item = TypeVar("Item", Contract, View)
Result = TypeVar("Result")
Work = Callable[["SparkSession", "Settings", Item, str], Result | None]
Connect = Callable[["Settings", str], AbstractContextManager["SparkSession"]]


def for_each(
    name: str,
    work: "Work[Item, Result]",
    items: Iterable[Item],
    run_id: str,
    connect: Connect = connect,
    at_once: int | None = None,
) -> dict[str, Result]:
    """Do the work for each item, and return what it returned, by item, in the order of the items; without those of None.

    An item that fails does not stop the others. Log lines have the step, and the stream or the view, as fields.

    Args:
        name: of the work, for the Spark server's UI and for messages.
        at_once: the most items at a time; None: as many as there are cores.

    Raises:
        SomeFailed: some items failed. The message names them with their reasons; the others are done.
    """
    settings = configuration.load()
    items = list(items)
    results: dict[str, Result] = {}
    failures = Failures()
    # The threads share one iterator, so each item is worked on once.
    queue = iter(items)

    def drain() -> None:
        with connect(settings, name) as spark:
            for item in queue:
                # Any exception: the other items must go on. It is raised again below.
                with bound_contextvars(step=name, **{_kind(item): item.name}), failures.of(item.name, Exception):
                    result = work(spark, settings, item, run_id)
                    if result is not None:
                        results[item.name] = result

    _in_threads(drain, min(at_once or settings.cores, len(items)))
    failures.check(name)
    return {item.name: results[item.name] for item in items if item.name in results}


def _kind(item: Contract | View) -> str:
    return "stream" if isinstance(item, Contract) else "view"


def _in_threads(function: Callable[[], object], count: int) -> None:
    with ThreadPoolExecutor(max(count, 1)) as pool:
        # With the context of the caller, log lines have the fields that Airflow gives them, such as the run.
        for future in [pool.submit(copy_context().run, function) for _ in range(count)]:
            future.result()
