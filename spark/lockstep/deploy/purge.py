"""Remove for ever what a view or a stream has left behind, after its files were removed from the project.

Each step may be killed, and the next purge finishes what is left. Until then, a view that is added again finds its tables as they
were, or none: what is known of a table goes before the table, and that the live query must begin anew is recorded first.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.batch import saved_machines
from lockstep.checkpoints import journal
from lockstep.checkpoints.savepoints import savepoint_location
from lockstep.control import traces
from lockstep.control.intervals import holders
from lockstep.control.leases import lease
from lockstep.definition.registry import chosen
from lockstep.definition.tables import history_of, late_of
from lockstep.deploy.remains import Kind, Remains
from lockstep.errors import LockstepError
from lockstep.failpoints import failpoint
from lockstep.ledger import archive
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint
from lockstep.marts import run as marts
from lockstep.quality import outcomes
from lockstep.reconcile import record as reconciliations
from lockstep.serving import merged, publish_changelog, publish_results
from lockstep.sinks import kafka_senders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.live.generation import Generation
    from lockstep.settings import Settings

# Who the leases, the generation and the commits name.
PURGE = "purge"
# A query that was just stopped finishes its micro-batch, and a task its table.
_WAIT_SECONDS = 15
Step = Callable[[], object]


class PurgeRefused(LockstepError):
    """Something still needs what would be removed."""


def purge(spark: "SparkSession", settings: "Settings", remains: Remains) -> None:
    """Remove all of it, with the leases of its tables and of its live query. A purge that was killed is run again.

    Raises:
        PurgeRefused: a replay, a backfill or a fork needs some of it. Nothing was removed.
        LeaseHeld: a run or a live query still writes. Nothing was removed.
    """
    if reasons := _needed(settings, remains):
        raise PurgeRefused(f"{remains} is not purged, and nothing of it was removed:\n  " + "\n  ".join(reasons))
    query = [f"checkpoint:{remains.name}"] if remains.kind is Kind.VIEW else []
    steps = {Kind.VIEW: _steps_of_view, Kind.STREAM: _steps_of_stream}[remains.kind]
    with lease(settings, [*remains.tables, *query], PURGE, _WAIT_SECONDS):
        for step in steps(spark, settings, remains):
            step()
            failpoint("purge-step")


def _steps_of_view(spark: "SparkSession", settings: "Settings", remains: Remains) -> Iterator[Step]:
    name = remains.name
    yield partial(_begin_anew, settings, name)
    yield partial(merged.withdraw, spark, settings, name, chosen(settings.views))
    yield partial(lake.drop_view, spark, settings, late_of(name))
    yield partial(reconciliations.forget, spark, settings, name)
    yield from _steps_of_tables(spark, settings, remains)
    yield partial(lake.remove, saved_machines.location(settings, name))
    yield partial(lake.remove, savepoint_location(settings, name))
    # The directory of all its jobs: also what is no whole checkpoint.
    yield partial(lake.remove, lake.checkpoint(settings, name, 0).rpartition("/")[0])
    for job in remains.checkpoints:
        yield partial(journal.forget, settings, job)
        yield partial(lake.remove, job.location(settings))
    yield partial(kafka_senders.forget, settings, name)
    # The last: as long as the database knows the view, the next purge finds it.
    yield partial(traces.forget_view, settings, name)


def _steps_of_stream(spark: "SparkSession", settings: "Settings", remains: Remains) -> Iterator[Step]:
    yield partial(lake.drop_view, spark, settings, history_of(remains.name))
    yield partial(publish_changelog.forget, settings, remains.name)
    yield partial(publish_results.forget, settings, remains.name)
    yield from _steps_of_tables(spark, settings, remains)


def _steps_of_tables(spark: "SparkSession", settings: "Settings", remains: Remains) -> Iterator[Step]:
    for forget in (archive.forget, outcomes.forget, marts.forget):
        yield partial(forget, spark, settings, [*remains.tables])
    for table in remains.tables:
        yield partial(traces.forget_tables, settings, [table])
        yield partial(lake.drop, spark, settings, table)


def _begin_anew(settings: "Settings", view: str) -> None:
    """Record a new generation, which keeps nothing of those before."""
    if generations.get(settings, view).by != PURGE:
        generations.advance(settings, view, "what was before it is purged", PURGE)


def _needed(settings: "Settings", remains: Remains) -> list[str]:
    current = generations.all_current(settings).values()
    waiting = [g for g in current if g.savepoint and Checkpoint(g.location(settings)).id() is None]
    held = {str(h["table_name"]): f"the {h['kind']} {h['holder']}" for h in holders(settings)}
    return needed(remains, held, waiting)


def needed(remains: Remains, held: dict[str, str], waiting: "Iterable[Generation]") -> list[str]:
    """Why it must not be removed yet. Pure.

    Args:
        held: by table, who holds an interval of it.
        waiting: the generations that continue from a savepoint, and have not begun.
    """
    tables = [f"{table} is held by {held[table]}: promote or discard it" for table in remains.tables if table in held]
    savepoints = [
        f"{generation.query} begins with the savepoint {generation.savepoint}, and has not begun: let it begin first"
        for generation in waiting
        if generation.query != remains.name and str(generation.savepoint).partition("/")[0] == remains.name
    ]
    return tables + savepoints if remains.kind is Kind.VIEW else tables
