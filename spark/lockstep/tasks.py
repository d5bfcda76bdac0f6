"""The work of the DAGs' tasks: one function for each task, with arguments and results that fit into an XCom.

Each function opens its own client of the Spark server. Every function may run again: it does nothing if nothing is new.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import psycopg2
from kafka.errors import KafkaError

from lockstep import lake, ledger
from lockstep import settings as configuration
from lockstep.batch import rollup
from lockstep.batch.prepare import prepare as prepare_roll_ups
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, captured_tables, of_kind
from lockstep.definition.registry import chosen
from lockstep.definition.tables import bronze_of, gold_of, serving_of, silver_of
from lockstep.descriptions import checked, compacted, compared, written
from lockstep.errors import LedgerBroken, LockstepError
from lockstep.for_each import for_each
from lockstep.ingest import bronze
from lockstep.lineage import tables
from lockstep.lineage.step import traced
from lockstep.maintain import airflow_database
from lockstep.maintain import run as maintenance
from lockstep.maintain.run import MaintenanceFailed
from lockstep.marts import progress as marts_progress
from lockstep.quality import readiness
from lockstep.quality.gate import GateFailed, run_gates
from lockstep.quality.suites import gated
from lockstep.reconcile import run as reconciliation
from lockstep.refine import silver
from lockstep.results import Outcome, Results, TableResult
from lockstep.serving import merged, publish_changelog, publish_results
from lockstep.status.late_tables import late_bronze, late_gold, late_silver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract, Kind
    from lockstep.definition import View
    from lockstep.ledger.entries import Entry
    from lockstep.reconcile.report import Report
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
# Where cycles take longer than the minute between two runs of ingest, bronze may be nearly as old when the next one begins.
_OLD_SECONDS = 20


class LayersDiffer(LockstepError):
    """Live and batch differ, and no cause is known."""


def ingest(kind: "Kind", run_id: str, results: Results) -> dict[str, int]:
    """Write new records of the topics of a kind (``events`` or ``changes``) to bronze; new rows by stream."""
    settings, wanted = configuration.load(), of_kind(kind).values()
    contracts = bronze.behind(settings, wanted)
    results.nothing_new(bronze_of(c) for c in wanted if c not in contracts)
    try:
        return _write_bronze(contracts, run_id, results)
    finally:
        _mark_late(results, partial(late_bronze, settings, wanted))


def _write_bronze(contracts: "Iterable[Contract]", run_id: str, results: Results) -> dict[str, int]:
    work = traced("ingest", bronze.ingest, lambda c: [tables.topic_of(c)], lambda c: [bronze_of(c)])
    return _rows(for_each("ingest", results.each(work, bronze_of, written), contracts, run_id))


def unrefined() -> list[str]:
    """The streams whose silver is behind bronze."""
    settings = configuration.load()
    return [name for name, contract in CONTRACTS.items() if silver.behind(settings, contract)]


def refine(run_id: str, results: Results, ingest_first: bool = False) -> dict[str, int]:
    """Bring silver up to bronze; new rows by stream.

    Args:
        ingest_first: before that, bring bronze up to its topics, if nothing was ingested for a while.
    """
    settings = configuration.load()
    if ingest_first and _is_old(settings):
        _bring_up_bronze(settings, run_id, results)
    contracts = [CONTRACTS[name] for name in unrefined()]
    results.nothing_new(silver_of(c) for c in CONTRACTS.values() if c not in contracts)
    work = traced("refine", silver.refine, lambda c: [bronze_of(c)], tables.refined)
    try:
        return _rows(for_each("refine", results.each(work, silver_of, written), contracts, run_id))
    finally:
        _mark_late(results, partial(late_silver, settings, CONTRACTS.values()))


def _is_old(settings: "Settings") -> bool:
    """Whether nothing was ingested for a while."""
    times = [0]
    for contract in CONTRACTS.values():
        # That a log is torn is for its own ingest and refine to say.
        with suppress(LedgerBroken):
            entry = ledger.latest(settings, bronze_of(contract))
            times.append(entry.committed_at if entry else 0)
    return time.time() * 1000 - max(times) > _OLD_SECONDS * 1000


def _bring_up_bronze(settings: "Settings", run_id: str, results: Results) -> None:
    """Ingest what there is. What fails does not stop refine: the DAG of ingest meets the same within a minute, and says so."""
    try:
        _write_bronze(bronze.behind(settings, CONTRACTS.values()), run_id, results)
    except (LockstepError, KafkaError) as error:
        log.warning("Silver begins with what bronze has: %s", error)


def roll_up(run_id: str, results: Results) -> dict[str, int]:
    """Bring the views' gold up to silver; new rows by view. A view waits while a gate of its silver tables is shut."""
    settings = configuration.load()
    wanted = chosen(settings.views)
    shut = readiness.waits_for(settings, wanted)
    for view in wanted:
        if behind := shut.get(view.name):
            reason = f"{', '.join(behind)} has not passed its gate"
            results.add(TableResult(gold_of(view), Outcome.WAITING, detail=reason))
    views = [view for view in wanted if view.name not in shut]
    prepared = prepare_roll_ups(settings, views, partial(connect, settings, "roll_up"))

    def roll_up(spark: "SparkSession", settings: "Settings", view: "View", run_id: str) -> "Entry | None":
        return rollup.roll_up(spark, settings, view, run_id, prepared.get(view.name))

    work = traced("roll_up", roll_up, tables.read_by, lambda view: [gold_of(view)])
    try:
        return _rows(for_each("roll_up", results.each(work, gold_of, written), views, run_id))
    finally:
        _mark_late(results, partial(late_gold, settings, wanted))


def _mark_late(results: Results, late: Callable[[], dict[str, str]]) -> None:
    """Mark the tables that are late, where that can be found out. It decides nothing, so the task does not fail with it."""
    try:
        results.late(late())
    except (LockstepError, KafkaError, psycopg2.OperationalError) as error:
        log.warning("Which tables are late is not known: %s", error)


def _rows(entries: "Mapping[str, Entry]") -> dict[str, int]:
    """How many rows were written, where there were new ones."""
    return {name: entry.rows for name, entry in entries.items()}


def gate(layer: str, run_id: str, results: Results) -> dict[str, int]:
    """Check the new rows of a layer (``silver`` or ``gold``) against its suites; number of checks by table.

    ``serving.<view>`` shows what has passed, also when the gate of another table is shut.
    """
    settings = configuration.load()
    of_layer = [table for table in gated(settings) if table.startswith(f"{layer}.")]
    unchecked = readiness.unchecked(settings, of_layer)
    results.nothing_new(table for table in of_layer if table not in unchecked)
    if not unchecked:
        return {}
    with connect(settings, "gate") as spark:
        publish = partial(merged.publish, spark, settings, chosen(settings.views)) if layer == "gold" else _nothing
        with _and_then(publish):
            try:
                outcomes = run_gates(spark, settings, unchecked, run_id)
            except GateFailed as shut:
                results.add(*map(checked, shut.outcomes), *_failed(shut.unread))
                raise
            results.add(*map(checked, outcomes))
    return {outcome.table: len(outcome.results) for outcome in outcomes}


@contextmanager
def _and_then(follow: Callable[[], None]) -> Iterator[None]:
    """Do this after some work, also when that has failed: its error is raised then, with what else has failed as a note."""
    try:
        yield
    except Exception as error:
        try:
            follow()
        except LockstepError as another:
            error.add_note(str(another))
        raise
    follow()


def _nothing() -> None: ...


def _failed(failures: Mapping[str, Exception]) -> Iterator[TableResult]:
    return (TableResult(name, Outcome.FAILED, detail=str(error)) for name, error in failures.items())


def publish_changelogs() -> dict[str, int]:
    """Publish the rows of captured tables that have passed their gates; the number of records by stream."""
    settings = configuration.load()
    return publish_changelog.publish_all(settings, captured_tables().values())


def publish_view_results() -> dict[str, int]:
    """Publish the final rows of views, once they have passed their gate, for views that read them; the changes by stream."""
    return publish_results.publish_all(configuration.load(), CONTRACTS.values())


def reconcile(run_id: str, results: Results) -> dict[str, str]:
    """Compare live with batch for each view; the verdict by view.

    Raises:
        LayersDiffer: a window differs for no known reason.
    """
    settings = configuration.load()
    views = chosen(settings.views)
    compare = results.each(reconciliation.reconcile, serving_of, compared)

    def publish() -> None:
        with connect(settings, "reconcile") as spark:
            merged.publish(spark, settings, views)

    with _and_then(publish):
        reports = for_each("reconcile", compare, views, run_id, at_once=settings.background_threads)
    return verdicts(reports.values())


def verdicts(reports: "Iterable[Report]") -> dict[str, str]:
    """The verdict of each view, in words.

    Raises:
        LayersDiffer: a window differs for no known reason.
    """
    reports = list(reports)
    reasons = [
        f"{r.view}: {r.unexplained} of {r.windows} windows, such as {r.sample}" for r in reports if r.unexplained
    ]
    if reasons:
        raise LayersDiffer("Live and batch differ, and no cause is known:\n  " + "\n  ".join(reasons))
    return {report.view: f"{report.windows} windows {report.verdict}" for report in reports}


def clean_airflow() -> None:
    """Remove old runs from Airflow's own database, and what they said of their marts."""
    settings = configuration.load()
    airflow_database.clean(settings)
    marts_progress.remove_old(settings)


def maintain(run_id: str, results: Results) -> list[str]:
    """Compact tables and remove files that no reader needs any more; one line for each table."""
    settings = configuration.load()
    views = chosen(settings.views)
    with connect(settings, "maintain") as spark:
        # Before it, because readers of an older version would miss its files. What fails here fails again after it.
        merged.publish_or_log(spark, settings, views)
        # After it, because they read the newest faster.
        with _and_then(partial(merged.publish, spark, settings, views)):
            try:
                done = maintenance.maintain(spark, settings, lake.tables(settings), run_id)
            except MaintenanceFailed as failure:
                results.add(*map(compacted, failure.done), *_failed(failure.failures))
                raise
            results.add(*map(compacted, done))
    return [f"{r.table}: {r.files_before} files before, {r.files_after} files after" for r in done]
