"""The names of fields that records have and the contract does not name. Pure.

Their values stay in bronze: nobody has said whether they are PII, so they must not be in silver in the clear. When the contract
gets a column for one, a replay of silver reads its values from there.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.contracts import Contract

# What a column may be called. A longer or stranger name is a key of the data, such as an e-mail address, and may be PII itself.
_COLUMN_NAME = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"
# Stands for all such names.
OTHERS = "*"


def with_unknown(parsed: "DataFrame", contract: "Contract") -> "DataFrame":
    """Add ``_unknown`` in the place of ``_text``: the names of fields that the contract does not name.

    These are the payload's fields, and of a change those of its row.
    They are a sorted JSON array, and null where there are none. A field that is null has nothing to keep, and is left out. Names
    that no column could have are ``*`` together.
    """
    text = F.col("_text")
    if contract.kind == "changes":
        text = F.coalesce(F.get_json_object(text, "$.after"), F.get_json_object(text, "$.before"))
    known = F.array(*map(F.lit, contract.columns))
    # Most rows have no other keys, and to find that takes half of the time. What cannot be read is left to the other way.
    may_have = F.coalesce(F.size(F.array_except(F.json_object_keys(text), known)) != 0, F.lit(True))
    fields = F.map_filter(F.from_json(text, "MAP<STRING, STRING>"), lambda _, value: value.isNotNull())
    names = F.array_except(F.map_keys(fields), known)
    shown = F.transform(names, lambda name: F.when(name.rlike(_COLUMN_NAME), name).otherwise(OTHERS))
    array = F.to_json(F.array_sort(F.array_distinct(shown)))
    unknown = F.when(may_have, F.when(F.size(names) > 0, array))
    return parsed.select(F.expr("* EXCEPT (_text)"), unknown.alias("_unknown"))
