"""Go on from a savepoint: the same query again (restore), or a changed one beside it (fork)."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep.checkpoints import compatible, savepoints
from lockstep.checkpoints.errors import CheckpointIncompatible, Refused
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings


def restore(settings: "Settings", view: "View", name: str, why: str, by: str, run_id: str | None = None) -> int:
    """Let the query's next generation go on from a savepoint, with the table as it was then; return its number.

    What has arrived since is read again, so nothing is lost and nothing counted twice.

    Raises:
        Refused, CheckpointBroken: there is no such savepoint, or it is not whole.
    """
    saved = savepoints.load(settings, f"{view.name}/{name}")
    since, reference = saved.since_time, saved.reference
    return generations.advance(settings, view.name, why, by, since=since, savepoint=reference, run_id=run_id)


def fork(
    spark: "SparkSession", settings: "Settings", old: "View", new: "View", why: str, by: str, run_id: str | None = None
) -> str:
    """Let another view's query go on from where this one is, with a copy of its checkpoint and of its table.

    Raises:
        Refused: it is the same query, or the other has begun already and has not been reset.
        CheckpointIncompatible: the other cannot resume from this checkpoint.
    """
    if old.name == new.name:
        raise Refused(f"{old.name} cannot be forked into itself: give the changed view a name of its own.")
    target = generations.get(settings, new.name)
    if Checkpoint(target.location(settings)).last() is not None:
        raise Refused(
            f"{new.name} has begun already (generation {target.number}), so it cannot begin where {old.name} is. Give the "
            "changed view another name."
        )
    generation = generations.get(settings, old.name)
    differences = compatible.differences(spark, settings, generation.location(settings), new, generation.table)
    if differences:
        raise CheckpointIncompatible(
            f"{new.name} cannot go on from the checkpoint of {old.name}: {'; '.join(differences)}. Let it begin by itself."
        )
    name = f"fork-{new.name[:40]}-{datetime.now(UTC):%Y%m%dt%H%M%S}"
    saved = savepoints.take(spark, settings, generation, name, by)
    since, reference = saved.since_time, saved.reference
    number = generations.advance(settings, new.name, why, by, since=since, savepoint=reference, run_id=run_id)
    return f"{new.name}: generation {number} begins beside {old.name}, after its batch {saved.batch}."
