"""The names of fields that records have and the contract does not name. Pure.

Their values stay in bronze: nobody has said whether they are PII, so they must not be in silver in the clear. When the contract
gets a column for one, a replay of silver reads its values from there.
"""

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.contracts import Contract

# What a column may be called. A longer or stranger name is a key of the data, such as an e-mail address, and may be PII itself.
_COLUMN_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
# Stands for all such names.
OTHERS = "*"


def with_unknown(parsed: "DataFrame", contract: "Contract") -> "DataFrame":
    """Add ``_unknown``: the names of the payload's fields (of a change: those of its row) that the contract does not name.

    They are a sorted JSON array, and null where there are none. A field that is null has nothing to keep, and is left out. Names
    that no column could have are ``*`` together.
    """
    text = F.col("_value").cast("string")
    if contract.kind == "events":
        unknown = F.when(~_has_only_columns(text, contract), _unknown(text, contract))
    else:
        unknown = _unknown(
            F.coalesce(F.get_json_object(text, "$.after"), F.get_json_object(text, "$.before")), contract
        )
    return parsed.withColumn("_unknown", unknown)


def _unknown(payload: "Column", contract: "Contract") -> "Column":
    fields = F.map_filter(F.from_json(payload, "MAP<STRING, STRING>"), lambda _, value: value.isNotNull())
    names = F.array_except(F.map_keys(fields), F.array(*map(F.lit, contract.columns)))
    shown = F.transform(names, lambda name: F.when(name.rlike(_COLUMN_NAME), name).otherwise(OTHERS))
    return F.when(F.size(names) > 0, F.to_json(F.array_sort(F.array_distinct(shown))))


def _has_only_columns(text: "Column", contract: "Contract") -> "Column":
    """Whether the text has as many fields with a value as the row has columns with one. If in doubt, it has not.

    To parse a text a second time costs most of what the first time did; to count its colons after quotes costs little. A struct,
    or a text that contains such a colon, only looks like further fields.
    """
    with_value = _count(text, '":') - _count(text, '":null') - _count(text, '": null')
    columns = (F.col(name).isNotNull().cast("int") for name in contract.columns)
    return with_value == reduce(add, columns)


def _count(text: "Column", part: str) -> "Column":
    """How often a text has this part of ASCII characters."""
    without = F.octet_length(F.replace(text, F.lit(part), F.lit("")))
    return (F.octet_length(text) - without) / len(part)
