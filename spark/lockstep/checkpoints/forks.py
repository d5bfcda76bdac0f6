"""Go on from a savepoint: the same query again (restore), or a changed one beside it (fork)."""

from typing import TYPE_CHECKING

from lockstep.checkpoints import compatible, generations, savepoints
from lockstep.checkpoints.errors import CheckpointIncompatible, Refused
from lockstep.checkpoints.files import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings


def restore(settings: "Settings", view: "View", name: str, why: str, by: str) -> int:
    """Let the query's next generation go on from a savepoint, with the table as it was then; return its number.

    What has arrived since is read again, so nothing is lost and nothing counted twice.

    Raises:
        Refused, CheckpointBroken: there is no such savepoint, or it is not whole.
    """
    saved = savepoints.load(settings, f"{view.name}/{name}")
    return generations.advance(settings, view.name, why, by, since=saved.since_time, savepoint=saved.reference)


def fork(spark: "SparkSession", settings: "Settings", old: "View", new: "View", why: str, by: str) -> str:
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
    differences = compatible.differences(spark, settings, generation.location(settings), new)
    if differences:
        raise CheckpointIncompatible(
            f"{new.name} cannot go on from the checkpoint of {old.name}: {'; '.join(differences)}. Let it begin by itself."
        )
    name = f"fork-{new.name}"[:63].rstrip("-_")
    taken = {one.name for one in savepoints.saved(settings, old.name)}
    unique = next(n for n in (name, *(f"{name[:59]}-{i}" for i in range(2, 1000))) if n not in taken)
    saved = savepoints.take(settings, generation, unique, by)
    number = generations.advance(settings, new.name, why, by, since=saved.since_time, savepoint=saved.reference)
    return f"{new.name}: generation {number} begins beside {old.name}, after its batch {saved.batch}."
