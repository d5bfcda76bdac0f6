"""Read a query's state with Spark's own readers: which state stores it has, and which values they have for which key."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.checkpoints.alias import readable
from lockstep.checkpoints.errors import ActionRefused
from lockstep.definition.columns import ddl
from lockstep.definition.events import COLUMNS
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.machine import BUCKETS, KEY, MACHINES
from lockstep.live.timing_wheel import WAITING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import View
    from lockstep.live.generation import Generation
    from lockstep.live.sink import Member
    from lockstep.settings import Settings

# In the keys of machines, the view that a key is of.
_LABEL = KEY[0]


@dataclass(frozen=True)
class StateStore:
    """One state store of a stateful operator, or one variable of a store that has several.

    Args:
        variable: of state machines ``machines``, ``buckets`` (of their map state) or ``waiting`` (events and timers that wait);
            empty for other operators.
        rows: the number of keys after the last finished batch.
    """

    operator: int
    name: str
    store: str
    variable: str
    partitions: int
    rows: int

    def __str__(self) -> str:
        store = f"{self.store}{'/' + self.variable if self.variable else ''}"
        return f"operator {self.operator} {self.name}, {store}: {self.rows:,} rows in {self.partitions} partitions"


def state_stores(spark: "SparkSession", settings: "Settings", view: "View") -> list[StateStore]:
    """The query's state stores, with the number of their rows.

    Raises:
        ActionRefused: the query has no state yet.
    """
    return [
        StateStore(
            row["operatorId"],
            row["operatorName"],
            row["stateStoreName"],
            variable,
            row["numPartitions"],
            frame.count(),
        )
        for row, variable, frame in _frames_of(spark, settings, view)
    ]


def state_rows(spark: "SparkSession", settings: "Settings", members: "Sequence[Member]") -> dict[str, int]:
    """By view, the number of rows in all the stores of a job. The state is read once for all its views.

    Raises:
        ActionRefused: the job has no state yet.
    """
    counts: Counter[str] = Counter()
    names = {generation.key_label: view.name for generation, view in members}
    for *_, frame in _frames(spark, _location(settings, members[0][0])):
        if _has_label(frame):
            by_label = frame.groupBy(f"key.{_LABEL}").count().collect()
            # A view that has left the job may still have rows in its state.
            counts.update({names[r[_LABEL]]: r["count"] for r in by_label if r[_LABEL] in names})
        else:
            # Which events there were is the state of all its views.
            counts.update(dict.fromkeys(names.values(), frame.count()))
    return {view.name: counts[view.name] for _, view in members}


def read_state(
    spark: "SparkSession", settings: "Settings", view: "View", operator: int, contains: str, limit: int
) -> list[dict[str, Any]]:
    """Rows of an operator's state, as JSON objects with ``key`` and ``value`` (or what its kind of state has).

    Args:
        contains: read only keys whose JSON contains this text; empty: all keys.
        limit: read at most this many rows of each store.

    Raises:
        ActionRefused: there is no such operator, or no state yet.
    """
    frames = [entry for entry in _frames_of(spark, settings, view) if entry[0]["operatorId"] == operator]
    if not frames:
        raise ActionRefused(
            f"{view.name} has no stateful operator {operator}: `lockstep checkpoints inspect {view.name}` lists them."
        )
    objects: list[dict[str, Any]] = []
    for row, variable, frame in frames:
        columns = [name for name in frame.columns if name != "partition_id"]
        key = F.to_json(F.struct("key"))
        rows = frame.where(F.contains(key, F.lit(contains))) if contains else frame
        texts = rows.select(F.to_json(F.struct(*columns)).alias("row")).limit(limit).collect()
        objects += [{"store": variable or row["stateStoreName"]} | json.loads(text["row"]) for text in texts]
    return objects


def _location(settings: "Settings", generation: "Generation") -> str:
    location = generation.location(settings)
    if Checkpoint(location).last_batch() is None:
        raise ActionRefused(f"{generation.query} has no state yet: no batch of its query is done.")
    return location


def _frames_of(spark: "SparkSession", settings: "Settings", view: "View") -> "Iterator[tuple[Any, str, DataFrame]]":
    """The stores as :func:`_frames` gives them, with the view's own rows only."""
    generation = generations.get(settings, view.name)
    for row, variable, frame in _frames(spark, _location(settings, generation)):
        own = frame.where(F.col(f"key.{_LABEL}") == generation.key_label) if _has_label(frame) else frame
        yield row, variable, own


def _has_label(frame: "DataFrame") -> bool:
    return _LABEL in frame.select("key.*").columns


def _frames(spark: "SparkSession", location: str) -> "Iterator[tuple[Any, str, DataFrame]]":
    """A row of Spark's ``state-metadata``, a variable of its store, and the rows of that variable, for every store."""
    for row in spark.read.format("state-metadata").load(location).collect():
        if is_state_machine(row):
            for variable, frame_of in _VARIABLES.items():
                yield row, variable, frame_of(_read(spark, location, row, {"stateVarName": variable}))
        else:
            yield row, "", read_store(spark, location, row)


def read_store(spark: "SparkSession", location: str, row: Any) -> "DataFrame":
    """The rows of the store that a row of Spark's ``state-metadata`` names. It must not be a state machine's."""
    options = {} if row["stateStoreName"] == "default" else {"storeName": row["stateStoreName"]}
    return _read(spark, location, row, options)


def is_state_machine(row: Any) -> bool:
    """Whether a row of Spark's ``state-metadata`` is of a state machine. Its one store has several variables."""
    return bool(row["operatorName"].startswith("transformWithState"))


def _read(spark: "SparkSession", location: str, row: Any, options: dict[str, str]) -> "DataFrame":
    return (
        spark.read.format("statestore").options(path=readable(location), operatorId=row["operatorId"], **options).load()
    )


def _texts(variable: "DataFrame") -> "DataFrame":
    """The machines of a job, by view and key, or their buckets."""
    return variable.select(F.col("user_map_key").alias("key"), F.col("user_map_value").alias("value"), "partition_id")


def _waiting(variable: "DataFrame") -> "DataFrame":
    """What waits for its time, by view and key. A timer has no event, so its fields are null, apart from the time."""
    entry = ddl({**dict.fromkeys(KEY, "STRING"), **COLUMNS})
    entries = F.explode(F.from_json("user_map_value.entries", f"array<struct<{entry}>>")).alias("entry")
    value = F.struct(*(f"entry.{name}" for name in COLUMNS if name not in KEY))
    return variable.select(entries, "partition_id").select(
        F.struct(*(f"entry.{name}" for name in KEY)).alias("key"), value.alias("value"), "partition_id"
    )


# The state variables of machines that have rows of views.
_VARIABLES = {MACHINES: _texts, BUCKETS: _texts, WAITING: _waiting}
