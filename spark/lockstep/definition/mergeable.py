"""Aggregates that can also be made of the aggregates of parts of the rows.

They are to SQL what ``merge`` is to Flink's ``AggregateFunction``. With them, batch counts a row that is in twelve overlapping
windows once, and not twelve times: see :mod:`.panes`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mergeable:
    """An aggregate over rows, and what gives the same from parts of them.

    Args:
        sql: the aggregate over rows.
        parts: what is kept of each part of the rows: an aggregate over its rows, and the aggregate that makes one value of those
            of several parts, in which ``{}`` is such a value.
        result: what the merged parts give (SQL): ``{0}`` is the first of them.
    """

    sql: str
    parts: tuple[tuple[str, str], ...]
    result: str

    def merged(self, names: list[str]) -> str:
        """The aggregate (SQL) over parts, given the columns in which they are."""
        return self.result.format(*(merge.format(name) for (_, merge), name in zip(self.parts, names, strict=True)))


def mergeable(of_rows: str, of_parts: str) -> Mergeable:
    """An aggregate (SQL) over rows, and that over what it gives of each part, as ``{}``: ``count(*)`` and ``sum({})``."""
    return Mergeable(of_rows, ((of_rows, of_parts),), "{0}")


def combined(sql: str, *measures: Mergeable) -> Mergeable:
    """An expression (SQL) over other measures, such as a share of one in another: ``{0}`` is the first of them."""
    parts = tuple(part for measure in measures for part in measure.parts)
    numbers = iter(range(len(parts)))
    results = [one.result.format(*(f"{{{next(numbers)}}}" for _ in one.parts)) for one in measures]
    return Mergeable(sql.format(*(one.sql for one in measures)), parts, sql.format(*results))


def sql_of(measure: str | Mergeable) -> str:
    """The aggregate (SQL) over rows."""
    return measure if isinstance(measure, str) else measure.sql
