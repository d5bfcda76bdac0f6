"""Look into a query's state, through Spark's own readers: which stores it has, and what they hold for which key."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep.checkpoints import generations
from lockstep.checkpoints.alias import readable
from lockstep.checkpoints.errors import Refused
from lockstep.checkpoints.files import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings

# How Spark names what it keeps for itself; its reader takes such a name for a mistake, and has an option for timers.
_OWN = "$"


@dataclass(frozen=True)
class Store:
    """One state store of a stateful operator.

    Args:
        variable: of a state machine's state variable, or ``timers``; else empty.
        rows: how many keys it holds after the last done batch.
    """

    operator: int
    name: str
    store: str
    variable: str
    partitions: int
    rows: int

    def __str__(self) -> str:
        place = f"{self.store}{'/' + self.variable if self.variable else ''}"
        return f"operator {self.operator} {self.name}, {place}: {self.rows:,} rows in {self.partitions} partitions"


def stores(spark: "SparkSession", settings: "Settings", view: "View") -> list[Store]:
    """The query's state stores, counted.

    Raises:
        Refused: the query has no state yet.
    """
    return [Store(*found, frame.count()) for found, frame in _frames(spark, _location(settings, view))]


def look(
    spark: "SparkSession", settings: "Settings", view: "View", operator: int, where: str, limit: int
) -> list[dict[str, Any]]:
    """Rows of an operator's state, as JSON objects with ``key`` and ``value`` (or what its kind of state has).

    Args:
        where: a text that the key, as JSON, contains; empty: all.
        limit: at most so many rows of each store.

    Raises:
        Refused: there is no such operator, or no state yet.
    """
    found: list[dict[str, Any]] = []
    frames = [one for one in _frames(spark, _location(settings, view)) if one[0][0] == operator]
    if not frames:
        raise Refused(
            f"{view.name} has no stateful operator {operator}: `lockstep checkpoints inspect {view.name}` lists them."
        )
    for (_, _, store, variable, _), frame in frames:
        columns = [name for name in frame.columns if name != "partition_id"]
        key = F.to_json(F.struct("key"))
        rows = frame.where(F.contains(key, F.lit(where))) if where else frame
        texts = rows.select(F.to_json(F.struct(*columns)).alias("row")).limit(limit).collect()
        found += [{"store": variable or store} | json.loads(row["row"]) for row in texts]
    return found


def _location(settings: "Settings", view: "View") -> str:
    location = generations.get(settings, view.name).location(settings)
    if Checkpoint(location).last() is None:
        raise Refused(f"{view.name} has no state yet: no batch of its query is done.")
    return location


def _frames(spark: "SparkSession", location: str) -> "Iterator[tuple[tuple[int, str, str, str, int], DataFrame]]":
    for row in spark.read.format("state-metadata").load(location).collect():
        what = (row["operatorId"], row["operatorName"], row["stateStoreName"])
        for variable, options in _variables(row).items():
            yield (*what, variable, row["numPartitions"]), _read(spark, location, row, options)


def plain(spark: "SparkSession", location: str, row: Any) -> "DataFrame":
    """The store that is meant by a row of Spark's ``state-metadata``, unless it is a machine's."""
    return _read(spark, location, row, _variables(row)[""])


def is_machines(row: Any) -> bool:
    """Whether a row of Spark's ``state-metadata`` is of a state machine, which has a store for many variables."""
    return bool(row["operatorName"].startswith("transformWithState"))


def _read(spark: "SparkSession", location: str, row: Any, options: dict[str, str]) -> "DataFrame":
    return (
        spark.read.format("statestore").options(path=readable(location), operatorId=row["operatorId"], **options).load()
    )


def _variables(row: Any) -> dict[str, dict[str, str]]:
    """What a store keeps apart, by name (none unless it is a machine's), and the options of Spark's reader for it."""
    if not is_machines(row):
        return {"": {} if row["stateStoreName"] == "default" else {"storeName": row["stateStoreName"]}}
    kept = [variable["stateName"] for variable in json.loads(row["operatorProperties"])["stateVariables"]]
    found = {name: {"stateVarName": name} for name in kept if not name.startswith(_OWN)}
    return found if len(found) == len(kept) else found | {"timers": {"readRegisteredTimers": "true"}}
