"""Which rows of a table no gate has seen yet, read from the logs alone; no Spark needed."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.ledger.ranges import Range, to_where

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Slice:
    """The rows of a table that the commits up to ``version`` of its ledger brought.

    Args:
        where: a SQL predicate that selects them.
        rows: how many rows these commits wrote.
    """

    table: str
    version: int
    where: str
    rows: int


def pending(settings: "Settings", table: str, since: int) -> Slice | None:
    """What came to ``layer.name`` after version ``since`` (-1: ever) of its ledger, or None when nothing did."""
    ledger = ledger_of(table)
    new = [
        commit
        for commit in itertools.takewhile(lambda c: c.version > since, lake.commits(settings, ledger))
        if "ranges" in commit.record and commit.rows
    ]
    if not new:
        return None
    where = _offsets(new) if table.startswith("silver.") else _windows(new)
    return Slice(table, new[0].version, where, sum(commit.rows for commit in new))


def ledger_of(table: str) -> str:
    """The table whose log says what came to this one: of a change stream, the log of its changes."""
    layer, _, name = table.partition(".")
    return Tables.of(CONTRACTS[name]).log if layer == "silver" and name in CONTRACTS else table


def _offsets(commits: "Iterable[Commit]") -> str:
    # A replay takes no new offsets, but says whose rows it has replaced.
    ranges = [Range(**r) for commit in commits for r in commit.record.get("replayed", commit.record["ranges"])]
    return to_where(cover(ranges), "_partition", "_offset")


def cover(ranges: Iterable[Range]) -> list[Range]:
    """One range per partition that holds all of its ranges; a ledger's are contiguous, so it holds nothing else."""
    by_partition = sorted((r for r in ranges if r.size), key=lambda r: r.partition)
    return [
        Range(same[0].topic, same[0].topic_id, partition, min(r.start for r in same), max(r.end for r in same))
        for partition, group in itertools.groupby(by_partition, key=lambda r: r.partition)
        for same in [list(group)]
    ]


def _windows(commits: "Iterable[Commit]") -> str:
    """The windows, or of a keyed view the instants, in the files that the commits added: at least those that they changed."""
    files = [stats for commit in commits for stats in commit.files]
    for column in ("at", "window_start"):
        lows = [stats.get("minValues", {}).get(column) for stats in files]
        highs = [stats.get("maxValues", {}).get(column) for stats in files]
        if None not in (*lows, *highs):
            # Delta cuts the statistics to milliseconds, so the highest may be just below the value that it stands for.
            return f"{column} >= timestamp '{min(lows)}' AND {column} < timestamp '{max(highs)}' + INTERVAL 1 SECOND"
    return "true"
