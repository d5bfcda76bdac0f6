"""Find out before a deployment whether a changed query can continue from its checkpoint.

Spark knows a query's stateful operators only after it has planned a batch. So the changed query runs one batch on a temporary
checkpoint: it reads the newest record of each partition, and writes nothing. Then the two checkpoints are compared.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.checkpoints.errors import ActionRefused, CheckpointIncompatible
from lockstep.checkpoints.query_shape import compare, read_shape
from lockstep.definition.version import definition_version
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.live import definitions, generations, query
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.definition import View
    from lockstep.definition.view import Grouping
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.live.generation import Generation
    from lockstep.live.sink import Member
    from lockstep.settings import Settings

# The temporary checkpoints are generations of a query that does not exist.
TRIALS = "_probes"
# A first batch takes a few seconds, and half a minute on a server that has just started. The job of 18 views took 80 s on two
# cores that were busy with other work; if it was given up there, it would never start.
_BATCH_SECONDS = 300


@dataclass(frozen=True)
class Verdict:
    """Whether a query can continue from its checkpoint.

    Args:
        differences: why it cannot; empty if it can.
    """

    query: str
    generation: int
    differences: tuple[str, ...]

    @property
    def resumes(self) -> bool:
        """Whether it can continue."""
        return not self.differences

    @property
    def next_generation(self) -> int:
        """The generation that a reset starts."""
        return self.generation + 1

    def __str__(self) -> str:
        if self.resumes:
            return f"resumes     {self.query}: generation {self.generation}"
        return (
            f"INCOMPATIBLE {self.query}: {'; '.join(self.differences)}. Begin generation {self.next_generation}: "
            f"`lockstep checkpoints reset {self.query} --to earliest`"
        )


def verdict(spark: "SparkSession", settings: "Settings", view: "View") -> Verdict:
    """Compare the view as it is now with its query's checkpoint. A query that has not started can always start."""
    generation = generations.get(settings, view.name)
    if Checkpoint(generation.location(settings)).last_batch() is None:
        return Verdict(view.name, generation.number, ())
    return Verdict(view.name, generation.number, tuple(differences(spark, settings, generation, view)))


def ensure_compatible(spark: "SparkSession", settings: "Settings", members: "Sequence[Member]") -> None:
    """Refuse a job that cannot continue from its checkpoint. However many views it runs, it is tried once.

    Raises:
        CheckpointIncompatible: names the differences, and the generation to start.
    """
    generation, view = members[0]
    if Checkpoint(generation.location(settings)).last_batch() is not None:
        refuse(view, generation, _shape_differences(spark, settings, members))


def ensure_columns(spark: "SparkSession", settings: "Settings", generation: "Generation", view: "View") -> None:
    """Refuse a view whose rows its live table cannot take. Columns that are new are added when its query starts.

    Raises:
        CheckpointIncompatible: names the differences, and the generation to start.
    """
    refuse(view, generation, _column_differences(spark, settings, view, generation.table))


def ensure_same_windows(view: "View", generation: "Generation", recorded: "Mapping[str, Grouping]") -> None:
    """Refuse a view of windows whose part of the state that it shares with others is not what it was.

    Alone, it may still go on: Spark compares types, and not what was counted.

    Args:
        recorded: what the state consists of, by label; nothing of keyed views.

    Raises:
        CheckpointIncompatible: names what is different, and the generation to start.
    """
    before, now = recorded.get(generation.key_label), view.grouping
    if before is None or now is None:
        return
    old, new = ([*grouping.by.items(), *grouping.measures.items()] for grouping in (before, now))
    if old != new:
        names = ", ".join(sorted({name for name, _ in {*old} ^ {*new}})) or "the order of its measures"
        refuse(view, generation, [f"it shares its state with other views, and has another definition of {names} there"])


def refuse(view: "View", generation: "Generation", differences: list[str]) -> None:
    """Raise CheckpointIncompatible if there are differences."""
    if differences:
        raise CheckpointIncompatible(
            f"{view.name} has changed, and cannot continue from the checkpoint of generation {generation.number}: "
            f"{'; '.join(differences)}. Its query was not started. Begin generation {generation.number + 1}: "
            f"`lockstep checkpoints reset {view.name} --to earliest`."
        )


def differences(spark: "SparkSession", settings: "Settings", generation: "Generation", view: "View") -> list[str]:
    """Every reason why the view cannot continue from the checkpoint and the rows of a generation, its own or another view's."""
    columns = _column_differences(spark, settings, view, generation.table)
    return [*columns, *_shape_differences(spark, settings, [(generation, view)])]


def _shape_differences(spark: "SparkSession", settings: "Settings", members: "Sequence[Member]") -> list[str]:
    trial = lake.checkpoint(settings, TRIALS, 0).rpartition("/")[0] + f"/{uuid.uuid4().hex}"
    try:
        _run_one_batch(spark, settings, members, trial)
        return compare(read_shape(spark, members[0][0].location(settings)), read_shape(spark, trial))
    finally:
        filesystem, root = Checkpoint(trial).open()
        filesystem.create_dir(root, recursive=True)
        filesystem.delete_dir(root)


def _column_differences(spark: "SparkSession", settings: "Settings", view: "View", table: str) -> list[str]:
    if not lake.exists(settings, table):
        return []
    return [f"{table}: {problem}" for problem in lake.differences(spark, settings, table, view.live_columns)]


def _run_one_batch(spark: "SparkSession", settings: "Settings", members: "Sequence[Member]", trial: str) -> None:
    """Run the job on the newest record of each partition, until a batch is finished."""
    view = members[0][1]
    topics = query.topics_of(members)
    bounds = offsets_of_topics(settings, topics)
    newest = {t: {p: max(first, last - 1) for p, (first, last) in b.partitions.items()} for t, b in bounds.items()}
    if not any(last > newest[t][p] for t, b in bounds.items() for p, (_, last) in b.partitions.items()):
        raise ActionRefused(f"{', '.join(topics)} hold no record, so {view.name} cannot be tried: produce one first.")
    query.set_state_partitions(spark, settings, members[0])
    writer = query.rows(spark, settings, members, newest).writeStream.format("noop").outputMode("update")
    running = writer.option("checkpointLocation", trial).trigger(processingTime="1 second").start()
    try:
        if not _finishes_a_batch(running, Checkpoint(trial)):
            raise ActionRefused(
                f"{view.name} did not finish a batch within {_BATCH_SECONDS} s: try again when Spark is less busy."
            )
    except PySparkException as error:
        raise CheckpointIncompatible(f"{view.name} does not run at all: {error}") from error
    finally:
        running.stop()


@retry(
    retry=retry_if_result(lambda finished: not finished),
    wait=wait_fixed(0.2),
    stop=stop_after_delay(_BATCH_SECONDS),
    retry_error_callback=lambda _: False,
)
def _finishes_a_batch(running: "StreamingQuery", trial: Checkpoint) -> bool:
    failure = running.exception()
    if failure is not None:
        raise failure
    return trial.last_batch() is not None


def changed(settings: "Settings", members: "Sequence[Member]") -> list[tuple["Member", str]]:
    """The views of a job whose definition is not the one with which their query last started, each with its fingerprint now.

    Raises:
        TopicMissing: one of their topics does not exist.
    """
    offsets = offsets_of_topics(settings, query.topics_of(members))
    now = [(member, fingerprint(offsets, member)) for member in members]
    return [(member, new) for member, new in now if definitions.last_definition(settings, member[0]) != new]


def fingerprint(topics: "Mapping[str, TopicOffsets]", member: "Member") -> str:
    """A digest of all that a view's query follows from: its definition, the code, and the partitions of its job's topics.

    Args:
        topics: the topics that its job reads, and perhaps others.
    """
    _, view = member
    partitions = [(topic, len(topics[topic].partitions)) for topic in sorted(query.topics_of([member]))]
    return _digest([definition_version(view), view.state_partitions, partitions], Path(query.__file__).read_bytes())


def _digest(values: list[object], code: bytes) -> str:
    return hashlib.sha256(json.dumps(values).encode() + code).hexdigest()[:16]
