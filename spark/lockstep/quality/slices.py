"""Which rows of a table a gate has to check next. Read from the table's log, without Spark."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.definition.view import literal
from lockstep.ledger import history
from lockstep.ledger.ranges import Range, decode, to_where

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings

# A replay may have changed rows of long ago while new ones came: what is between them is not checked again. Nearer ones are
# checked together, so that a predicate stays short.
_NEAR, _NEAR_OFFSETS = timedelta(days=1), 100_000


@dataclass(frozen=True)
class Slice:
    """New rows of a table.

    Args:
        version: the version of the table's ledger up to which the rows were committed.
        where: a SQL predicate that selects the rows.
        rows: how many rows the commits wrote.
    """

    table: str
    version: int
    where: str
    rows: int


def pending(settings: "Settings", table: str, since: int) -> Slice | None:
    """The rows that were added to ``layer.name`` after version ``since`` of its ledger (-1: all rows), or None."""
    entries = history.recorded(settings, ledger_of(table), f"version > {since}")
    new = [commit for commit in itertools.takewhile(lambda c: c.version > since, entries) if commit.rows]
    if not new:
        return None
    where = _offsets(new) if table.startswith("silver.") else _windows(new)
    return Slice(table, new[0].version, where, sum(commit.rows for commit in new))


def ledger_of(table: str) -> str:
    """The table whose commits are the ledger of this table. For the current rows of a change stream, its table of changes."""
    layer, _, name = table.partition(".")
    return Tables.of(CONTRACTS[name]).log if layer == "silver" and name in CONTRACTS else table


def _offsets(commits: "Iterable[Commit]") -> str:
    # A replay consumes no new offsets. Its record names the offsets whose rows it replaced.
    ranges = [r for commit in commits for r in decode(commit.record.get("replayed", commit.record["ranges"]))]
    return to_where(cover(ranges), "_partition", "_offset")


def cover(ranges: Iterable[Range]) -> list[Range]:
    """The ranges of each partition, those that lie near to one another as one. What lies between them may be covered too."""
    by_partition = sorted((r for r in ranges if r.size), key=lambda r: r.partition)
    return [
        Range(same[0].topic, same[0].topic_id, partition, start, end)
        for partition, group in itertools.groupby(by_partition, key=lambda r: r.partition)
        for same in [list(group)]
        for start, end in _merged([(r.start, r.end) for r in same], _NEAR_OFFSETS)
    ]


def _merged(spans: list[tuple[Any, Any]], near: Any) -> list[tuple[Any, Any]]:
    """Spans ``[low, high)`` in their order, with those in one that are no further apart than ``near``."""
    found: list[tuple[Any, Any]] = []
    for low, high in sorted(spans):
        if found and low - found[-1][1] <= near:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _windows(commits: "Iterable[Commit]") -> str:
    """The windows (for a keyed view: the instants) in the files that the commits added.

    These files contain every window that changed, and may contain others.
    """
    files = [stats for commit in commits for stats in commit.files]
    for column in ("at", "window_start"):
        lows = [stats.get("minValues", {}).get(column) for stats in files]
        highs = [stats.get("maxValues", {}).get(column) for stats in files]
        if None not in (*lows, *highs):
            # Delta truncates the statistics to milliseconds, so the real maximum may be a little higher.
            ends = (datetime.fromisoformat(high) + timedelta(seconds=1) for high in highs)
            spans = _merged([*zip(map(datetime.fromisoformat, lows), ends, strict=True)], _NEAR)
            return " OR ".join(f"({column} >= {literal(low)} AND {column} < {literal(high)})" for low, high in spans)
    return "true"
