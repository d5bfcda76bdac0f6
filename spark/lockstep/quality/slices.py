"""Which rows of a table a gate has to check next. Read from the table's log, without Spark."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.definition.view import literal
from lockstep.ledger import history
from lockstep.ledger.ranges import Range, decode, to_where

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings


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
    """One range per partition, from its lowest to its highest offset. A ledger's ranges are contiguous, so no gap is covered."""
    by_partition = sorted((r for r in ranges if r.size), key=lambda r: r.partition)
    return [
        Range(same[0].topic, same[0].topic_id, partition, min(r.start for r in same), max(r.end for r in same))
        for partition, group in itertools.groupby(by_partition, key=lambda r: r.partition)
        for same in [list(group)]
    ]


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
            first, end = datetime.fromisoformat(min(lows)), datetime.fromisoformat(max(highs)) + timedelta(seconds=1)
            return f"{column} >= {literal(first)} AND {column} < {literal(end)}"
    return "true"
