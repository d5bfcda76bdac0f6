"""Propose a suite from the rows of a table, for a person to review."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.errors import LockstepError
from lockstep.quality.distributions import against_history
from lockstep.quality.suites import pii_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# A text with more values than these is no set.
FEW = 12
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")


@dataclass(frozen=True)
class Facts:
    """What the rows say of one column.

    Args:
        kind: its type in Spark.
        low: the lowest value; None for what has no order, and for PII.
        values: all values, if it is a text with at most :data:`FEW`; else None.
    """

    kind: str
    nulls: int
    low: Any = None
    values: tuple[str, ...] | None = None


def profile(spark: "SparkSession", settings: "Settings", table: str) -> list[dict[str, Any]]:
    """The expectations that all rows of ``layer.name`` meet, in two passes over them.

    Raises:
        LockstepError: there is no such table, or it has no rows.
    """
    if not lake.exists(settings, table):
        raise LockstepError(f"There is no table {table}: `lockstep describe` names those that there are.")
    rows, pii, key = lake.read(spark, settings, table), pii_columns(table), _key(table)
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema}
    asked = [F.count("*").alias("rows")]
    for name, kind in kinds.items():
        asked.append(F.count_if(F.col(name).isNull()).alias(f"{name}:nulls"))
        if _is_number(kind) and name not in pii:
            asked.append(F.min(name).alias(f"{name}:low"))
        if kind == "string" and name not in pii:
            asked.append(F.approx_count_distinct(name).alias(f"{name}:distinct"))
    found = rows.agg(*asked).collect()[0].asDict()
    if not found["rows"]:
        raise LockstepError(f"{table} has no rows yet, so nothing can be proposed: run this again when it has some.")
    few = [name for name in kinds if 0 < found.get(f"{name}:distinct", 0) <= FEW]
    more = [F.array_sort(F.collect_set(name)).alias(name) for name in few]
    is_unique = F.count_distinct(F.struct(*key)) if key else F.lit(0)
    second = rows.agg(*more, is_unique.alias("rows:distinct")).collect()[0].asDict()
    facts = {
        name: Facts(
            kind, found[f"{name}:nulls"], found.get(f"{name}:low"), tuple(second[name]) if name in few else None
        )
        for name, kind in kinds.items()
    }
    return [*proposed(facts, key if second["rows:distinct"] == found["rows"] else ())]


def proposed(facts: Mapping[str, Facts], key: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Expectations from facts: what looks like a promise shuts the gate, and what may be chance only warns. Pure.

    Args:
        key: the columns that no two rows have in common; empty: there are none.
    """
    for name, of in facts.items():
        if not of.nulls:
            yield {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": name}}
    if len(key) == 1:
        yield {"type": "expect_column_values_to_be_unique", "kwargs": {"column": key[0]}}
    elif key:
        yield {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": [*key]}}
    for name, of in facts.items():
        if name.startswith("_"):
            continue
        if of.low is not None and of.low >= 0:
            positive = {"column": name, "min_value": 0}
            yield {"type": "expect_column_values_to_be_between", "kwargs": positive, "severity": "warning"}
        if of.values is not None and len(of.values) > 1:
            in_set = {"column": name, "value_set": [*of.values]}
            yield {"type": "expect_column_values_to_be_in_set", "kwargs": in_set, "severity": "warning"}
            yield against_history(name)


def _key(table: str) -> tuple[str, ...]:
    name = table.partition(".")[2]
    if name in CONTRACTS:
        return CONTRACTS[name].unique_id
    return tuple(VIEWS[name].key) if name in VIEWS else ()


def _is_number(kind: str) -> bool:
    return kind.partition("(")[0] in _NUMBERS
