"""How the columns of a table become those that a contract or a view declares now. Pure."""

import re
from dataclasses import dataclass

from lockstep.definition.columns import Columns

# Each type of a group holds every value of those before it.
_WIDER = (("tinyint", "smallint", "int", "bigint"), ("float", "double"))
# Other names of these types: in DDL, and in the logs of Delta tables.
_ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?")
# Spark's DECIMAL without digits, and without those behind the point.
_PRECISION, _SCALE = 10, 0
_NESTED = ("array", "map", "struct")


@dataclass(frozen=True)
class ColumnChanges:
    """How a table follows its columns.

    Args:
        new: those that it lacks.
        wider: those whose type gets wider, with the new type.
        refused: a sentence for each change that a table cannot follow.
    """

    new: Columns
    wider: Columns
    refused: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.wider or self.refused)


def column_changes(there: Columns, wanted: Columns) -> ColumnChanges:
    """Compare the columns of a table with those that are declared.

    Args:
        there: the types as Spark or Delta name them; of a nested one the name of its kind, such as ``struct``, is enough, and
            then what is in it is not compared.
    """
    other = {name: kind for name, kind in wanted.items() if name in there and not _same(there[name], kind)}
    wider = {name: kind for name, kind in other.items() if widens(there[name], kind)}
    gone = [f"the column {name} is not declared any more" for name in there if name not in wanted]
    refused = [
        f"the column {name} is of type {there[name]}, and declared as {kind}"
        for name, kind in other.items()
        if name not in wider
    ]
    return ColumnChanges({n: k for n, k in wanted.items() if n not in there}, wider, (*gone, *refused))


def _same(there: str, wanted: str) -> bool:
    before, after = _plain(there), _plain(wanted)
    return before == after or (before in _NESTED and after.startswith(f"{before}<"))


def widens(old: str, new: str) -> bool:
    """Whether a type can replace another in a table, because it holds the very same values, and more.

    That is so for a larger integer type, for DOUBLE instead of FLOAT, and for a DECIMAL with more digits before the point. With
    more digits behind it, ``1.25`` would become ``1.2500`` in keys and in the states of machines.

    Args:
        old, new: as Spark or Delta name them, such as ``INT``, ``integer`` or ``decimal(10,2)``.
    """
    before, after = _plain(old), _plain(new)
    for kinds in _WIDER:
        if before in kinds and after in kinds:
            return kinds.index(before) < kinds.index(after)
    digits, new_digits = _digits(before), _digits(after)
    if digits is None or new_digits is None:
        return False
    return digits[1] == new_digits[1] and digits[0] < new_digits[0]


def _plain(kind: str) -> str:
    plain = kind.lower().replace(" ", "")
    return "decimal({},{})".format(*digits) if (digits := _digits(plain)) else _ALIASES.get(plain, plain)


def _digits(plain: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None: it is none."""
    found = _DECIMAL.fullmatch(plain)
    return (int(found[1] or _PRECISION), int(found[2] or _SCALE)) if found else None
