"""Before a query starts: nobody else runs it, its checkpoint is whole, and its table is as its generation begins."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.checkpoints import compatible, savepoints, verify
from lockstep.definition.columns import ddl
from lockstep.definition.trial import ensure
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.lake import Txn
from lockstep.live import generations, lease
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.definition import View
    from lockstep.live.generations import Generation
    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
# In Spark's words.
FIRST_OFFSET = -2
log = logging.getLogger("lockstep.checkpoints")


def begin(spark: "SparkSession", settings: "Settings", view: "View") -> "Generation":
    """Let the view's query start, and say from which generation; running it twice changes nothing.

    Raises:
        LeaseHeld: the query runs already.
        ViewRefused: the view cannot run in one of the layers.
        CheckpointBroken: its checkpoint is not whole, and cannot be made so.
        CheckpointIncompatible: the view has changed in a way that its checkpoint cannot follow.
    """
    generation = generations.get(settings, view.name)
    lease.free(settings, view.name)
    now = compatible.fingerprint(settings, view)
    # To try a changed definition takes seconds; most starts are those of the one that ran before.
    changed = generations.definition(settings, generation) != now
    if changed:
        ensure(spark, view)
    for problem in verify.ready(settings, generation):
        log.warning("%s: %s: put back from the journal", view.name, problem)
    if generation.number > 1 and "metadata" not in Checkpoint(generation.location(settings)).files():
        _prepare(spark, settings, view, generation)
        generation = replace(generation, starts=_of_all_partitions(settings, generation.starts))
    if changed:
        compatible.check(spark, settings, view)
        generations.started(settings, generation, now)
    return generation


def _of_all_partitions(settings: "Settings", starts: Starts) -> "dict[str, dict[int, int]]":
    """Spark wants an offset for every partition; those that were added since the generation was planned begin at their first."""
    held = offsets_of_topics(settings, [*starts]) if starts else {}
    return {t: {p: starts[t].get(p, FIRST_OFFSET) for p in bounds.partitions} for t, bounds in held.items()}


def _prepare(spark: "SparkSession", settings: "Settings", view: "View", generation: "Generation") -> None:
    """Give the live table the rows that the generation goes on from, and the checkpoint its savepoint."""
    log.info("%s: generation %d begins: %s", view.name, generation.number, generation.why)
    record = {"writer": "generation", "generation": generation.number, "why": generation.why, "by": generation.by}
    txn = Txn(f"generation:{generation.table}", generation.number)
    if generation.savepoint:
        savepoints.load(settings, generation.savepoint)
        rows = savepoints.rows(spark, settings, generation.savepoint)
        lake.overwrite(rows, settings, generation.table, txn, record)
        savepoints.unpack(settings, generation.savepoint, generation.location(settings))
    elif lake.exists(settings, generation.table):
        nothing = spark.createDataFrame([], ddl(view.live_columns))
        if generation.since:
            lake.replace(nothing, settings, generation.table, generation.written(view), txn, record)
        else:
            lake.overwrite(nothing, settings, generation.table, txn, record)
