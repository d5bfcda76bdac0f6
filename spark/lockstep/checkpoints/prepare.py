"""Prepare the start of a job: check that nobody else runs it and that its checkpoint is whole, and prepare its tables."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.checkpoints.checksums import write_with_checksum
from lockstep.checkpoints.compatible import changed, ensure_columns, ensure_compatible, ensure_same_windows
from lockstep.checkpoints.errors import CheckpointIncompatible
from lockstep.checkpoints.savepoints import copy_to_checkpoint, load_savepoint, savepoint_rows
from lockstep.checkpoints.verify import ensure_whole
from lockstep.definition.columns import ddl
from lockstep.definition.tables import gold_of
from lockstep.definition.trial import ensure
from lockstep.definition.view import BEGINNING
from lockstep.errors import LockstepError, ViewRefused
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.lake import Txn
from lockstep.live import definitions, lease, window_state
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.frontier import batch_final, live_table_final
from lockstep.live.sink import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lockstep.definition import View
    from lockstep.live.generation import Generation
    from lockstep.live.sink import Member
    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
# Spark's word for the first offset of a partition.
FIRST_OFFSET = -2
log = logging.getLogger("lockstep.checkpoints")


def prepare_start(spark: "SparkSession", settings: "Settings", members: "Sequence[Member]") -> "list[Member]":
    """Check that a job may start, prepare its checkpoint and the tables of its views, and return its members as they start.

    Running it twice changes nothing.

    Raises:
        LeaseHeld: a query of one of the views runs already.
        ViewCannotJoin: one of several views cannot run, or cannot continue from the checkpoint.
        ViewRefused: the only view cannot run in one of the layers.
        CheckpointBroken: the checkpoint has a problem that cannot be repaired.
        CheckpointIncompatible: the only view has changed so that it cannot continue from its checkpoint.
    """
    lease.ensure_free(settings, [generation.query for generation, _ in members])
    # A trial of a definition takes seconds. Most starts are of the definitions that ran before, and need none.
    differing = changed(settings, members)
    for (_, view), _ in differing:
        with _own_problem(view, members):
            ensure(spark, view)
    for problem in ensure_whole(settings, [generation for generation, _ in members]):
        log.warning("%s: %s: restored from the journal", members[0][0].job, problem)
    if _has_not_started(settings, members[0][0]):
        for generation, view in members:
            if generation.number > 1:
                _prepare_first_start(spark, settings, view, generation)
        members = _from_all_partitions(settings, members)
    recorded = window_state.load(Checkpoint(members[0][0].location(settings)))
    for (own, view), _ in differing:
        with _own_problem(view, members):
            ensure_columns(spark, settings, own, view)
            if len(members) > 1:
                ensure_same_windows(view, own, recorded)
    if differing:
        ensure_compatible(spark, settings, members)
    if not recorded:
        _record_windows(settings, members)
    for (own, _), definition in differing:
        definitions.record_definition(settings, own, definition)
    return [*members]


class ViewCannotJoin(LockstepError):
    """One view keeps the job that it shares from starting. The others can run without it."""

    def __init__(self, view: "View", reason: LockstepError) -> None:
        super().__init__(str(reason))
        self.view = view


@contextmanager
def _own_problem(view: "View", members: "Sequence[Member]") -> Iterator[None]:
    """Raise what is a problem of this view alone as :class:`ViewCannotJoin`, if the job has others."""
    try:
        yield
    except (ViewRefused, CheckpointIncompatible) as error:
        if len(members) == 1:
            raise
        raise ViewCannotJoin(view, error) from error


def _record_windows(settings: "Settings", members: "Sequence[Member]") -> None:
    """Write what the state of windowed views consists of into their checkpoint, before the first batch."""
    groupings = {generation.key_label: view.grouping for generation, view in members if view.grouping}
    if groupings:
        checkpoint = Checkpoint(members[0][0].location(settings))
        write_with_checksum(checkpoint, window_state.FILE, window_state.dump(groupings))


def _has_not_started(settings: "Settings", generation: "Generation") -> bool:
    return "metadata" not in Checkpoint(generation.location(settings)).files()


def _from_all_partitions(settings: "Settings", members: "Sequence[Member]") -> "list[Member]":
    """The members, whose starts have an offset for every partition, as Spark wants it.

    A partition that was added after the generation was created starts at its first offset.
    """
    named = sorted({topic for generation, _ in members for topic in generation.starts})
    topics = offsets_of_topics(settings, named) if named else {}

    def starts(of: Starts) -> dict[str, dict[int, int]]:
        return {t: {p: offsets.get(p, FIRST_OFFSET) for p in topics[t].partitions} for t, offsets in of.items()}

    return [(replace(generation, starts=starts(generation.starts)), view) for generation, view in members]


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
    elif generation.seed:
        lake.create(spark, settings, generation.table, view.live_columns, properties=PROPERTIES)
        schema = lake.read(spark, settings, generation.table).schema
        gold = lake.read(spark, settings, gold_of(view), generation.seed.version)
        lake.overwrite(_as_live(gold, schema), settings, generation.table, txn, record)
    elif lake.exists(settings, generation.table):
        if generation.since:
            _keep_final_rows(spark, settings, view, generation, generation.since, txn, record)
        else:
            no_rows = spark.createDataFrame([], ddl(view.live_columns))
            lake.overwrite(no_rows, settings, generation.table, txn, record)


def _keep_final_rows(
    spark: "SparkSession",
    settings: "Settings",
    view: "View",
    generation: "Generation",
    since: datetime,
    txn: Txn,
    record: "Mapping[str, Any]",
) -> None:
    """Leave the rows before ``since`` in the live table, as far as they were final there. The others become gold's, if gold has
    made them final. The table's columns stay: they follow the view when its query starts."""
    there = lake.read(spark, settings, generation.table)
    final, final_in_gold = live_table_final(settings, view) or BEGINNING, batch_final(settings, view) or BEGINNING
    if final < since + view.overlap <= final_in_gold:
        half = f"NOT ({view.final_before(final)})"
        gold = lake.read(spark, settings, gold_of(view)).where(half).where(f"NOT ({generation.rows_written(view)})")
        lake.replace(_as_live(gold, there.schema), settings, generation.table, half, txn, record)
    else:
        lake.replace(there.where("false"), settings, generation.table, generation.rows_written(view), txn, record)


def _as_live(gold: "DataFrame", schema: "StructType") -> "DataFrame":
    """Rows of gold in the columns of the live table, each older than any that the query will write."""
    given = {name: F.col(name) for name in gold.columns}
    given |= {"_revision": F.lit(0), "_updated_at": F.current_timestamp()}
    return gold.select(*(given.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name) for f in schema))
