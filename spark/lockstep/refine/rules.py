"""A stream's rules as conditions of Spark, which :func:`lockstep.refine.parse.parse` asks of each row. Pure.

They mean what they mean in Great Expectations, except where its engines decide differently: NaN is between no limits, and
decimals are compared as doubles, because Spark fails when two decimals do not fit into one type.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lockstep.definition.trial import samples

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from lockstep.contracts import Contract
    from lockstep.contracts.rules import Rule


def broken_rules(contract: "Contract") -> "Column":
    """The rules that a row does not meet, as one text; null: it meets all. Its PII must not be tokens yet."""
    texts = (F.when(_violates(rule, contract), F.lit(str(rule))) for rule in contract.rules)
    return F.nullif(F.concat_ws("; ", *texts), F.lit(""))


def refusals(spark: "SparkSession", contract: "Contract") -> list[str]:
    """Why Spark cannot apply the contract's rules, such as a regular expression that Java does not know; empty if it can."""
    found = []
    for rule in contract.rules:
        try:
            samples(spark, contract).select(_violates(rule, contract)).collect()
        except PySparkException as error:
            reason = str(error).strip().partition("\n")[0]
            found.append(f"{rule}: Spark cannot apply it: {reason}; correct it in the suite of silver.{contract.name}")
    return found


def _violates(rule: "Rule", contract: "Contract") -> "Column":
    """Whether the value does not meet the rule; false or null where it does, and for null values of most rules."""
    kind = contract.columns[rule.column].upper().partition("(")[0]
    column = F.col(rule.column).cast("double") if kind == "DECIMAL" else F.col(rule.column)
    violates = _KINDS[rule.kind](column, rule.kwargs, partial(_value, kind))
    # In Spark NaN is above all other numbers, so it would be within a range without an upper limit.
    is_range = rule.kind == "expect_column_values_to_be_between"
    return violates | F.isnan(column) if is_range and kind in ("FLOAT", "DOUBLE") else violates


def _value(kind: str, value: Any) -> "Column":
    """A value of JSON, to be compared with a column of this type."""
    if kind in ("TIMESTAMP", "DATE"):
        return F.lit(datetime.fromisoformat(value).isoformat()).cast("timestamp")
    return F.lit(float(value)) if kind == "DECIMAL" else F.lit(value)


def _outside(column: "Column", kwargs: Mapping[str, Any], value: "Callable[[Any], Column]") -> "Column":
    outside = F.lit(False)
    if (low := kwargs.get("min_value")) is not None:
        outside = outside | (column <= value(low) if kwargs.get("strict_min") else column < value(low))
    if (high := kwargs.get("max_value")) is not None:
        outside = outside | (column >= value(high) if kwargs.get("strict_max") else column > value(high))
    return outside


def _length_outside(column: "Column", kwargs: Mapping[str, Any], _: "Callable[[Any], Column]") -> "Column":
    return _outside(F.length(column), kwargs, F.lit)


def _in_set(column: "Column", kwargs: Mapping[str, Any], value: "Callable[[Any], Column]") -> "Column":
    return column.isin(*map(value, kwargs["value_set"]))


_KINDS: "Mapping[str, Callable[[Column, Mapping[str, Any], Callable[[Any], Column]], Column]]" = {
    "expect_column_values_to_not_be_null": lambda column, _, __: column.isNull(),
    "expect_column_values_to_be_null": lambda column, _, __: column.isNotNull(),
    "expect_column_values_to_be_between": _outside,
    "expect_column_values_to_be_in_set": lambda column, kwargs, value: ~_in_set(column, kwargs, value),
    "expect_column_values_to_not_be_in_set": _in_set,
    "expect_column_values_to_match_regex": lambda column, kwargs, _: ~column.rlike(kwargs["regex"]),
    "expect_column_values_to_not_match_regex": lambda column, kwargs, _: column.rlike(kwargs["regex"]),
    "expect_column_value_lengths_to_be_between": _length_outside,
    "expect_column_value_lengths_to_equal": lambda column, kwargs, _: F.length(column) != kwargs["value"],
}
