"""The work of the tasks of the marts and of whole days: one function for each task, as in :mod:`lockstep.tasks`."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import settings as configuration
from lockstep.batch import rollup
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.control.intervals import backfilling, of_gold
from lockstep.definition.registry import chosen
from lockstep.definition.tables import gold_of, silver_of
from lockstep.for_each import for_each
from lockstep.lineage import tables
from lockstep.lineage.step import step, traced
from lockstep.marts import complete, docs, freshness
from lockstep.marts import run as marts
from lockstep.marts.progress import Box, Progress
from lockstep.results import Outcome, Results, TableResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.definition import View
    from lockstep.ledger.entries import Entry
    from lockstep.settings import Settings

log = logging.getLogger(__name__)


def bring_up_marts(run_id: str, results: Results, progress: Progress) -> list[str]:
    """Build the days of the marts that new rows touch; the days that were built, the newest first.

    Args:
        progress: is told what becomes of each mart.

    Raises:
        MartsFailed: some days could not be built. The message says why; the others are done.
    """
    settings = configuration.load()
    with connect(settings, "marts") as spark, step(settings, "marts", run_id, tables.mart_sources(), tables.marts()):
        built = marts.bring_up(spark, settings, run_id, results, progress)
    return [marts.days(span) for span in built]


def build_mart(box: Box, run_id: str, results: Results, progress: Progress) -> list[str]:
    """Build one mart, and what is made from it, or test it, for the days of the run again; the models and tests that ran.

    Args:
        box: the mart to build, or whose tests to run.
        progress: of the run.

    Raises:
        LockstepError: a source has not passed its gate.
        MartsFailed: names the models and tests, and what they said.
    """
    settings = configuration.load()
    with connect(settings, "marts") as spark, step(settings, "marts", run_id, tables.mart_sources(), tables.marts()):
        return marts.build_again(spark, settings, box, run_id, results, progress)


def document_marts() -> str:
    """Build dbt's pages if the project has changed; where they are."""
    settings = configuration.load()
    with connect(settings, "marts") as spark:
        return str(docs.build(spark, settings) or "")


def look_for_stale_sources(results: Results) -> list[str]:
    """Name the sources that are stale by their ``freshness``. It does not fail: they may have nothing to say."""
    settings = configuration.load()
    with connect(settings, "marts") as spark:
        stale = freshness.stale(spark, settings)
    results.add(*(TableResult(table, Outcome.LATE, detail=reason) for table, reason in stale.items()))
    return sorted(stale)


def have_passed(instant: datetime, results: Results) -> bool:
    """Whether silver has every stream up to an instant. The streams that are behind are logged."""
    behind = complete.behind(configuration.load(), CONTRACTS.values(), instant)
    if behind:
        reason = f"lacks rows that were written before {instant:%F %H:%M}"
        lacking = [silver_of(CONTRACTS[name]) for name in behind]
        results.add(*(TableResult(table, Outcome.WAITING, detail=reason) for table in lacking))
        log.info("Not all rows from before %s are in silver: %s", instant.isoformat(), ", ".join(behind))
    return not behind


def rebuild_day(
    start: datetime, end: datetime, run_id: str, again: bool, results: Results, progress: Progress | None = None
) -> dict[str, list[str]]:
    """Rebuild the views and marts for the days in ``[start, end)`` (UTC); the tables of gold and the models that were built.

    A view that fails stops neither the other views nor the marts.

    Gold is checked by the next run of its gate, for all days at once: one gate for each day would double the time of a
    backfill.

    Args:
        again: also the views that this version of the code has computed.
        progress: is told what becomes of each mart.

    Raises:
        IntervalHeld: a replay works on one of the days. The message names it.
        SomeFailed: some views failed. The message names them; the others, and the marts, are done.
    """
    settings, start, end = configuration.load(), _plain(start), _plain(end)
    wanted = chosen(settings.views)
    views = [view for view in wanted if again or not rollup.is_current(settings, view)]
    current = (gold_of(view) for view in wanted if view not in views)
    results.add(*(TableResult(table, Outcome.NOTHING_NEW, detail="this code has computed it") for table in current))
    spans = {gold_of(view): of_gold(view, start, end) for view in views}

    def describe(table: str, _: "Entry") -> TableResult:
        return TableResult(table, Outcome.DONE, detail=f"{marts.days((start, end))} is computed again")

    def rebuild(spark: "SparkSession", settings: "Settings", view: "View", run_id: str) -> "Entry | None":
        return rollup.rebuild(spark, settings, view, start, end, run_id)

    with backfilling(settings, run_id, spans):
        try:
            work = traced("rollup", rebuild, tables.read_by, lambda view: [gold_of(view)])
            entries = for_each("rollup", results.each(work, gold_of, describe), views, run_id)
        finally:
            of_marts = step(settings, "marts", run_id, tables.mart_sources(), tables.marts())
            with connect(settings, "marts") as spark, of_marts:
                built = marts.build_days(spark, settings, (start, end), run_id, results, progress)
    return {"gold": [entry.table for entry in entries.values()], "marts": built}


def _plain(moment: datetime) -> datetime:
    """The instant as Python's own datetime: Airflow's are pendulum's, whose differences cannot be divided by a timedelta."""
    return datetime.fromtimestamp(moment.timestamp(), UTC)
