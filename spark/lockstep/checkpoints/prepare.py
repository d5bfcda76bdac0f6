"""Prepare the start of a query: check that nobody else runs it and that its checkpoint is whole, and prepare its table."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.checkpoints.compatible import ensure_compatible, fingerprint
from lockstep.checkpoints.savepoints import copy_to_checkpoint, load_savepoint, savepoint_rows
from lockstep.checkpoints.verify import ensure_whole
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
# Spark's word for the first offset of a partition.
FIRST_OFFSET = -2
log = logging.getLogger("lockstep.checkpoints")


def prepare_start(spark: "SparkSession", settings: "Settings", view: "View") -> "Generation":
    """Check that the view's query may start, prepare its table and checkpoint, and return the generation to start.

    Running it twice changes nothing.

    Raises:
        LeaseHeld: the query runs already.
        ViewRefused: the view cannot run in one of the layers.
        CheckpointBroken: its checkpoint has a problem that cannot be repaired.
        CheckpointIncompatible: the view has changed so that it cannot continue from its checkpoint.
    """
    generation = generations.get(settings, view.name)
    lease.ensure_free(settings, view.name)
    definition = fingerprint(settings, view)
    # A trial of the definition takes seconds. Most starts are of the definition that ran before, and need none.
    changed = generations.last_definition(settings, generation) != definition
    if changed:
        ensure(spark, view)
    for problem in ensure_whole(settings, generation):
        log.warning("%s: %s: restored from the journal", view.name, problem)
    if generation.number > 1 and "metadata" not in Checkpoint(generation.location(settings)).files():
        _prepare_first_start(spark, settings, view, generation)
        generation = replace(generation, starts=_for_all_partitions(settings, generation.starts))
    if changed:
        ensure_compatible(spark, settings, view)
        generations.record_definition(settings, generation, definition)
    return generation


def _for_all_partitions(settings: "Settings", starts: Starts) -> "dict[str, dict[int, int]]":
    """The starts, with an offset for every partition, as Spark wants it.

    A partition that was added after the generation was created starts at its first offset.
    """
    topics = offsets_of_topics(settings, [*starts]) if starts else {}
    return {t: {p: starts[t].get(p, FIRST_OFFSET) for p in bounds.partitions} for t, bounds in topics.items()}


def _prepare_first_start(spark: "SparkSession", settings: "Settings", view: "View", generation: "Generation") -> None:
    """Give the live table the rows with which the generation starts, and the checkpoint its savepoint."""
    log.info("%s: generation %d begins: %s", view.name, generation.number, generation.reason)
    record = {
        "writer": "generation",
        "generation": generation.number,
        "reason": generation.reason,
        "by": generation.by,
    }
    txn = Txn(f"generation:{generation.table}", generation.number)
    if generation.savepoint:
        load_savepoint(settings, generation.savepoint)
        rows = savepoint_rows(spark, settings, generation.savepoint)
        lake.overwrite(rows, settings, generation.table, txn, record)
        copy_to_checkpoint(settings, generation.savepoint, generation.location(settings))
    elif lake.exists(settings, generation.table):
        no_rows = spark.createDataFrame([], ddl(view.live_columns))
        if generation.since:
            lake.replace(no_rows, settings, generation.table, generation.rows_written(view), txn, record)
        else:
            lake.overwrite(no_rows, settings, generation.table, txn, record)
