"""The work of the DAGs' tasks: one function for each task, with arguments and results that fit into an XCom.

Each function opens its own client of the Spark server. Every function may run again: it does nothing if nothing is new.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep import settings as configuration
from lockstep.batch import rollup
from lockstep.batch.prepare import prepare as prepare_roll_ups
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.control.intervals import backfilling, of_gold
from lockstep.definition.registry import chosen
from lockstep.definition.tables import bronze_of, gold_of
from lockstep.for_each import TaskFailed, for_each
from lockstep.ingest import bronze
from lockstep.lineage import tables
from lockstep.lineage.step import step, traced
from lockstep.maintain import airflow_database
from lockstep.maintain import run as maintenance
from lockstep.marts import complete
from lockstep.marts import run as marts
from lockstep.marts.build import build
from lockstep.quality import docs, readiness
from lockstep.quality.gate import run_gates
from lockstep.quality.suites import gated
from lockstep.reconcile import run as reconciliation
from lockstep.refine import silver
from lockstep.refine.prepare import prepare as prepare_slices
from lockstep.replay import run as replays
from lockstep.replay.parse import parse
from lockstep.replay.report import diff_as_markdown
from lockstep.serving import merged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.definition import View
    from lockstep.ledger.entries import Entry
    from lockstep.reconcile.report import Report
    from lockstep.settings import Settings

log = logging.getLogger(__name__)


def ingest(kind: str, run_id: str) -> dict[str, int]:
    """Write new records of the topics of a kind (``events`` or ``changes``) to bronze; new rows by stream."""
    contracts = bronze.behind(configuration.load(), (c for c in CONTRACTS.values() if c.kind == kind))
    work = traced("ingest", bronze.ingest, lambda c: [tables.topic_of(c)], lambda c: [bronze_of(c)])
    return _rows(for_each("ingest", work, contracts, run_id))


def unrefined() -> list[str]:
    """The streams whose silver is behind bronze."""
    settings = configuration.load()
    return [name for name, contract in CONTRACTS.items() if silver.behind(settings, contract)]


def refine(run_id: str) -> dict[str, int]:
    """Bring silver up to bronze; new rows by stream."""
    settings, contracts = configuration.load(), [CONTRACTS[name] for name in unrefined()]
    slices = prepare_slices(settings, contracts, partial(connect, settings, "refine"))

    def refine(spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str) -> "Entry | None":
        return silver.refine(spark, settings, contract, run_id, slices.get(contract.name))

    work = traced("refine", refine, lambda c: [bronze_of(c)], tables.refined)
    return _rows(for_each("refine", work, contracts, run_id))


def roll_up(run_id: str) -> dict[str, int]:
    """Bring the views' gold up to silver; new rows by view. A view waits while a gate of its silver tables is shut."""
    settings = configuration.load()
    views = readiness.ready(settings, chosen(settings.views))
    prepared = prepare_roll_ups(settings, views, partial(connect, settings, "roll_up"))

    def roll_up(spark: "SparkSession", settings: "Settings", view: "View", run_id: str) -> "Entry | None":
        return rollup.roll_up(spark, settings, view, run_id, prepared.get(view.name))

    work = traced("roll_up", roll_up, tables.read_by, lambda view: [gold_of(view)])
    return _rows(for_each("roll_up", work, views, run_id))


def _rows(entries: "Mapping[str, Entry]") -> dict[str, int]:
    """How many rows were written, where there were new ones."""
    return {name: entry.rows for name, entry in entries.items()}


def gate(layer: str, run_id: str) -> dict[str, int]:
    """Check the new rows of a layer (``silver`` or ``gold``) against its suites; number of checks by table.

    When gold has passed, ``serving.<view>`` shows it. The data docs are built again after every gate, also after a failure.
    """
    settings = configuration.load()
    unchecked = readiness.unchecked(settings, [table for table in gated(settings) if table.startswith(f"{layer}.")])
    if not unchecked:
        return {}
    try:
        with connect(settings, "gate") as spark:
            outcomes = run_gates(spark, settings, unchecked, run_id)
            if layer == "gold":
                merged.publish(spark, settings, chosen(settings.views))
    finally:
        log.info("Data docs: %s", docs.build(settings))
    return {outcome.table: outcome.checks for outcome in outcomes}


def bring_up_marts(run_id: str) -> list[str]:
    """Build the days of the marts that new rows touch; what was built, as ``<first day>/<last day>``, the newest first.

    Raises:
        MartsFailed: some days could not be built. The message says why; the others are done.
    """
    settings = configuration.load()
    with connect(settings, "marts") as spark, step(settings, "marts", run_id, tables.mart_sources(), tables.marts()):
        built = marts.bring_up(spark, settings, run_id)
    return [f"{start:%F}/{end - timedelta(days=1):%F}" for start, end in built]


def have_passed(instant: datetime) -> bool:
    """Whether silver has every stream up to an instant. The streams that are behind are logged."""
    behind = complete.behind(configuration.load(), CONTRACTS.values(), instant)
    if behind:
        log.info("Not all rows from before %s are in silver: %s", instant.isoformat(), ", ".join(behind))
    return not behind


def rebuild_day(start: datetime, end: datetime, run_id: str, again: bool) -> dict[str, list[str]]:
    """Rebuild the views and marts for the days in ``[start, end)`` (UTC); the tables of gold and the models that were built.

    A view that fails stops neither the other views nor the marts.

    Gold is checked by the next run of its gate, for all days at once: one gate for each day would double the time of a
    backfill.

    Args:
        again: also the views that this version of the code has computed.

    Raises:
        IntervalHeld: a replay works on one of the days. The message names it.
        TaskFailed: some views failed. The message names them; the others, and the marts, are done.
    """
    settings = configuration.load()
    views = [view for view in chosen(settings.views) if again or not rollup.is_current(settings, view)]
    spans = {gold_of(view): of_gold(view, start, end) for view in views}

    def rebuild(spark: "SparkSession", settings: "Settings", view: "View", run_id: str) -> "Entry | None":
        return rollup.rebuild(spark, settings, view, start, end, run_id)

    with backfilling(settings, run_id, spans):
        try:
            work = traced("rollup", rebuild, tables.read_by, lambda view: [gold_of(view)])
            entries = for_each("rollup", work, views, run_id)
        finally:
            of_marts = step(settings, "marts", run_id, tables.mart_sources(), tables.marts())
            with connect(settings, "marts") as spark, of_marts:
                built = build(spark, settings, start, end, run_id)
    return {"gold": [entry.table for entry in entries.values()], "marts": built}


@contextmanager
def replaying() -> "Iterator[tuple[SparkSession, Settings]]":
    """Open a client for one stage of a replay."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        yield spark, settings


def replay_plan(params: dict[str, Any], run_id: str, by: str) -> str:
    """Open the replay that a form describes, and hold its intervals; its id. The same run always has the same id."""
    request = parse(params)
    with replaying() as (spark, settings):
        return replays.open_replay(spark, settings, request, by, run_id, replays.identify(request, run_id)).id


def replay_shadow(replay: str, run_id: str) -> dict[str, Any]:
    """Compute the replay's shadow tables; the seconds that it took, and the version of the code."""
    with replaying() as (spark, settings):
        shadowed = replays.compute(spark, settings, replay, run_id)
    return {"seconds": shadowed.seconds, "code_version": shadowed.code_version}


def replay_diff(replay: str, run_id: str) -> str:
    """Compare the replay's shadow tables with the rows that they would replace; the diff as Markdown."""
    with replaying() as (spark, settings):
        return diff_as_markdown(replay, replays.compare(spark, settings, replay, run_id))


def replay_approve(replay: str, run_id: str, by: str) -> None:
    """Approve the replay as a person."""
    with replaying() as (spark, settings):
        replays.approve(spark, settings, replay, run_id, by)


def replay_approve_by_rule(replay: str, run_id: str) -> None:
    """Approve the replay if the rule of its request allows the diff."""
    with replaying() as (spark, settings):
        replays.approve_by_rule(spark, settings, replay, run_id)


def replay_promote(replay: str, run_id: str) -> dict[str, int]:
    """Promote the replay; by table, the version of the commit."""
    with replaying() as (spark, settings), step(settings, "replay.promote", run_id, (), tables.replayed()):
        return dict(replays.promote(spark, settings, replay, run_id).versions)


def replay_discard(replay: str, run_id: str, by: str = "airflow") -> None:
    """Discard the replay."""
    with replaying() as (spark, settings):
        replays.discard(spark, settings, replay, run_id, by)


def replay_undo(replay: str, run_id: str, by: str) -> dict[str, Any]:
    """Undo the replay; the versions of the commits, and by view the number of windows that later writes keep."""
    with replaying() as (spark, settings), step(settings, "replay.undo", run_id, (), tables.replayed()):
        return replays.undo(spark, settings, replay, run_id, by).model_dump(mode="json", include={"versions", "kept"})


def reconcile(run_id: str) -> dict[str, str]:
    """Compare live with batch for each view; the verdict by view.

    Raises:
        TaskFailed: a window differs for no known reason.
    """
    settings = configuration.load()
    views = chosen(settings.views)
    try:
        reports = for_each("reconcile", reconciliation.reconcile, views, run_id)
    finally:
        with connect(settings, "reconcile") as spark:
            merged.publish(spark, settings, views)
    return verdicts(reports.values())


def verdicts(reports: "Iterable[Report]") -> dict[str, str]:
    """The verdict of each view, in words.

    Raises:
        TaskFailed: a window differs for no known reason.
    """
    reports = list(reports)
    reasons = [
        f"{r.view}: {r.unexplained} of {r.windows} windows, such as {r.sample}" for r in reports if r.unexplained
    ]
    if reasons:
        raise TaskFailed("Live and batch differ, and no cause is known:\n  " + "\n  ".join(reasons))
    return {report.view: f"{report.windows} windows {report.verdict}" for report in reports}


def clean_airflow() -> None:
    """Remove old runs from Airflow's own database."""
    airflow_database.clean(configuration.load())


def maintain(run_id: str) -> list[str]:
    """Compact tables and remove files that no reader needs any more; one line for each table."""
    settings = configuration.load()
    with connect(settings, "maintain") as spark:
        results = maintenance.maintain(spark, settings, lake.tables(settings), run_id)
    return [f"{r.table}: {r.files_before} files before, {r.files_after} files after" for r in results]
