"""Which columns can hold the values of a schema's fields."""

from enum import Enum


class Kind(Enum):
    """A kind of values that a field has, with the types of Spark that can hold them. All of them have a text."""

    # A text may be a decimal or a time, as in JSON; one that is not is malformed.
    TEXT = ("DECIMAL", "DATE", "TIMESTAMP")
    BOOLEAN = ("BOOLEAN",)
    INTEGER = ("INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")
    LONG = ("BIGINT", "DOUBLE", "DECIMAL")
    NUMBER = ("FLOAT", "DOUBLE")
    DECIMAL = ("DECIMAL",)
    DATE = ("DATE",)
    TIME = ("TIMESTAMP",)
    BYTES = ("BINARY",)
    RECORD = ("STRUCT", "MAP")
    MAP = ("MAP",)
    ARRAY = ("ARRAY",)
    # Of several types at once.
    MIXED = ()


def fits(kind: Kind, column: str) -> bool:
    """Whether a column of this type of Spark (such as ``DECIMAL(10,2)``) can hold the values of a field."""
    name = column.upper().split("(")[0].split("<")[0].strip()
    return name == "STRING" or name in kind.value
