"""Continue from a savepoint: restore the same query, or fork a changed view beside it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep.checkpoints import compatible
from lockstep.checkpoints.errors import ActionRefused, CheckpointIncompatible
from lockstep.checkpoints.savepoints import load_savepoint
from lockstep.checkpoints.take_savepoint import take_savepoint
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.checkpoints.savepoints import Savepoint
    from lockstep.definition import View
    from lockstep.live.generation import Generation
    from lockstep.settings import Settings

# Who does what no person has asked for.
PLATFORM = "lockstep"


@dataclass(frozen=True)
class Restore:
    """A query's new generation that continues from a savepoint of the query."""

    query: str
    generation: int
    savepoint: str

    def __str__(self) -> str:
        return f"{self.query}: generation {self.generation} begins, from savepoint {self.savepoint}."


@dataclass(frozen=True)
class Fork:
    """A generation of a changed view's query that continues after a batch of the original query."""

    query: str
    generation: int
    origin: str
    batch: int

    def __str__(self) -> str:
        return f"{self.query}: generation {self.generation} begins beside {self.origin}, after its batch {self.batch}."


def restore(settings: "Settings", view: "View", name: str, reason: str, by: str, run_id: str | None = None) -> Restore:
    """Create the query's next generation from a savepoint, with the table as it was when the savepoint was taken.

    The query reads again what has arrived since, so nothing is lost and nothing is counted twice.

    Raises:
        ActionRefused, CheckpointBroken: there is no such savepoint, or it is not whole.
    """
    savepoint = load_savepoint(settings, f"{view.name}/{name}")
    return Restore(view.name, _continue_from(settings, view, savepoint, reason, by, run_id), name)


def fork(
    spark: "SparkSession",
    settings: "Settings",
    original: "View",
    changed: "View",
    reason: str,
    by: str,
    run_id: str | None = None,
) -> Fork:
    """Create a generation of the changed view's query, with a copy of the original query's checkpoint and table.

    Raises:
        ActionRefused: both are the same query, or the changed view's query has started already.
        CheckpointIncompatible: the changed view cannot continue from this checkpoint.
    """
    if original.name == changed.name:
        raise ActionRefused(f"{original.name} cannot be forked into itself: give the changed view a name of its own.")
    target = generations.get(settings, changed.name)
    if Checkpoint(target.location(settings)).last_batch() is not None:
        raise ActionRefused(
            f"{changed.name} has started already (generation {target.number}), so it cannot continue from {original.name}. Give "
            "the changed view another name."
        )
    generation = generations.get(settings, original.name)
    differences = compatible.differences(spark, settings, generation, changed)
    if differences:
        raise CheckpointIncompatible(
            f"{changed.name} cannot continue from the checkpoint of {original.name}: {'; '.join(differences)}. Start it "
            "without a fork."
        )
    name = f"fork-{changed.name[:40]}-{datetime.now(UTC):%Y%m%dt%H%M%S}"
    savepoint = take_savepoint(spark, settings, generation, name, by, reason)
    number = _continue_from(settings, changed, savepoint, reason, by, run_id)
    return Fork(changed.name, number, original.name, savepoint.batch)


def separate(spark: "SparkSession", settings: "Settings", generation: "Generation", view: "View", reason: str) -> None:
    """Give a view that shares its job one of its own, which continues from a copy of the job's checkpoint.

    The job goes on without the view when it starts again.
    """
    name = f"separate-{generation.number}"
    if Checkpoint(generation.location(settings)).last_batch() is None:
        starts, seed = generation.starts, generation.seed
        generations.advance(settings, view.name, reason, PLATFORM, starts, run_id=name, seed=seed)
        return
    savepoint = take_savepoint(spark, settings, generation, name, PLATFORM, reason, run_id=name)
    _continue_from(settings, view, savepoint, reason, PLATFORM, run_id=name)


def _continue_from(
    settings: "Settings", view: "View", savepoint: "Savepoint", reason: str, by: str, run_id: str | None
) -> int:
    return generations.advance(
        settings, view.name, reason, by, since=savepoint.since_time, savepoint=savepoint, run_id=run_id
    )
