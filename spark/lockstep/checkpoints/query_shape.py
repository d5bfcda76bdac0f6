"""What a restart of a query depends on: its sources and the types of its state. Spark cannot continue if one of them differs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep.checkpoints import inspection
from lockstep.checkpoints.errors import ActionRefused
from lockstep.live.checkpoint import STATE_PARTITIONS, Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Operator:
    """A stateful operator.

    Args:
        name: Spark's name of its kind, such as ``stateStoreSave``.
        stores: by the name of each of its state stores, the types of the keys and values as text.
    """

    name: str
    stores: Mapping[str, str]


@dataclass(frozen=True)
class QueryShape:
    """A query, as far as its checkpoint depends on it.

    Args:
        sources: the topic of each source, in the query's order.
        operators: the stateful operators, by number.
        partitions: in how many partitions it keeps its state.
    """

    sources: Sequence[str]
    operators: Mapping[int, Operator]
    partitions: int = 1


def read_shape(spark: "SparkSession", location: str) -> QueryShape:
    """The shape of the query that has written the checkpoint at a location.

    Raises:
        ActionRefused: the checkpoint has no finished batch.
    """
    checkpoint = Checkpoint(location)
    last = checkpoint.last_batch()
    if last is None:
        raise ActionRefused(f"{location} has no batch that is done.")
    names: dict[int, str] = {}
    stores: dict[int, dict[str, str]] = {}
    for row in spark.read.format("state-metadata").load(location).collect():
        names[row["operatorId"]] = row["operatorName"]
        stores.setdefault(row["operatorId"], {})[row["stateStoreName"]] = _types_of_store(spark, location, row)
    batch = checkpoint.batch(last)
    return QueryShape(
        sources=[_topics(source) for source in batch.sources],
        operators={number: Operator(name, stores[number]) for number, name in names.items()},
        partitions=int(batch.conf[STATE_PARTITIONS]),
    )


def _topics(source: Any) -> str:
    if not isinstance(source, dict):
        return "nothing"
    return ", ".join(sorted(source))


def _types_of_store(spark: "SparkSession", location: str, row: Any) -> str:
    """The types of a store's keys and values. Spark ignores the names of their fields."""
    if inspection.is_state_machine(row):
        variables = json.loads(row["operatorProperties"] or "{}").get("stateVariables", [])
        return "; ".join(sorted(f"{v['stateName']}: {v['stateVariableType']}" for v in variables))
    fields = inspection.read_store(spark, location, row).schema.fields
    return ", ".join(f"{f.name} {_type_text(f.dataType)}" for f in fields if f.name in ("key", "value"))


def _type_text(data_type: Any) -> str:
    fields = getattr(data_type, "fields", None)
    if fields is None:
        return str(data_type.simpleString())
    return f"<{', '.join(_type_text(field.dataType) for field in fields)}>"


def compare(old: QueryShape, new: QueryShape) -> list[str]:
    """Every difference that keeps Spark from continuing, each as a sentence about the new query. Pure."""
    return [*_source_differences(old, new), *_partition_differences(old, new), *_operator_differences(old, new)]


def _source_differences(old: QueryShape, new: QueryShape) -> Iterator[str]:
    if old.sources != new.sources:
        yield (
            f"it reads {len(new.sources)} sources ({', '.join(new.sources)}), and the checkpoint has "
            f"{len(old.sources)} ({', '.join(old.sources)}): partitions or topics were added, left out or reordered"
        )


def _partition_differences(old: QueryShape, new: QueryShape) -> Iterator[str]:
    # Spark itself would go on with the old number, whatever the view says.
    if old.partitions != new.partitions:
        yield f"its state is in {new.partitions} partitions, and the checkpoint's in {old.partitions}"


def _operator_differences(old: QueryShape, new: QueryShape) -> Iterator[str]:
    for number in sorted(old.operators.keys() | new.operators.keys()):
        before, after = old.operators.get(number), new.operators.get(number)
        if before is None and after is not None:
            yield f"it has a new stateful operator {after.name} at place {number}"
        elif before is not None and after is None:
            yield f"it has no stateful operator {before.name} at place {number}"
        elif before is not None and after is not None:
            if before.name != after.name:
                yield f"its stateful operator {number} is {after.name}, and was {before.name}"
            else:
                yield from _store_differences(number, before, after)


def _store_differences(number: int, before: Operator, after: Operator) -> Iterator[str]:
    for store in sorted(before.stores.keys() | after.stores.keys()):
        old_types, new_types = before.stores.get(store), after.stores.get(store)
        if old_types is None or new_types is None:
            yield f"operator {number} ({before.name}) {'has no' if new_types is None else 'has'} state {store}"
        elif old_types != new_types:
            yield f"the state of operator {number} ({before.name}) is {new_types}, and was {old_types} in {store}"
