"""The rows of a view that upserts that may differ although they were compared before: those of files that were added since.

Such a view closes no windows: a row of long ago may change. To compare all of its rows in each run would cost as much as its
history is long. But both tables say in their logs which files each commit has added, and between which values of a column their
rows are. So where a column of the key grows with time, such as the time of the event or a version, older rows than those of the
new files have not changed, and are not read.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.definition import View, states
from lockstep.definition.tables import gold_of, live_of
from lockstep.definition.view import literal
from lockstep.reconcile.difference import Difference

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.reconcile.inputs import ComparisonInput
    from lockstep.settings import Settings

# A value of the column, as the statistics of a file, the key of a difference and the record of a run have it.
First = str | int
_NUMBERS = ("BIGINT", "INT")
_ALL = "true"


@dataclass(frozen=True)
class Compared:
    """What a run has compared of a view that upserts.

    Args:
        live, batch: the versions of its tables.
        live_at, batch_at: when these were committed (milliseconds, UTC): an end of a log that is lost comes again.
        open: the first value of the column in a row that differs and has to be compared again; None: there is none.
    """

    live: int
    live_at: int
    batch: int
    batch_at: int
    open: First | None


def compared(
    settings: "Settings", view: View, rows: "ComparisonInput", opened: Iterable[First | None]
) -> Compared | None:
    """What a run has compared; None: it is not known, or the view closes its rows.

    Args:
        opened: what :func:`first_to_compare` gives, of some differences at a time.
    """
    if rows.live_version is None or rows.batch_version is None:
        return None
    live_at, batch_at = (
        next((c.timestamp for c in lake.commits(settings, table) if c.version == version), None)
        for table, version in ((live_of(view), rows.live_version), (gold_of(view), rows.batch_version))
    )
    if live_at is None or batch_at is None:
        return None
    first = min((first for first in opened if first is not None), default=None)
    return Compared(rows.live_version, live_at, rows.batch_version, batch_at, first)


def may_differ(settings: "Settings", view: View, before: Compared | None, rows: "ComparisonInput") -> str:
    """The predicate (SQL that DataFusion knows, too) for the rows that may differ now.

    Args:
        before: what the last run has compared; None: there was none.
    """
    column = _column(view)
    if before is None or column is None or rows.live_version is None or rows.batch_version is None:
        return _ALL
    added = itertools.chain(
        _added(settings, live_of(view), column, (before.live, before.live_at), rows.live_version),
        _added(settings, gold_of(view), column, (before.batch, before.batch_at), rows.batch_version),
    )
    firsts = [*added, *([] if before.open is None else [before.open])]
    known = [first for first in firsts if first is not None]
    if len(known) < len(firsts):
        return _ALL
    if not known:
        return f"{column} IS NULL"
    is_number = view.output_columns[column] in _NUMBERS
    first = str(min(map(int, known))) if is_number else literal(min(states.instant(str(one)) for one in known))
    return f"({column} >= {first} OR {column} IS NULL)"


def first_to_compare(view: View, differences: Iterable[Difference]) -> First | None:
    """The first value of the column in a row that the next run compares again; None: there is none, or no such column."""
    column = _column(view)
    if column is None:
        return None
    values = (states.loads(d.key)[column] for d in differences if not d.is_settled)
    return min((value for value in values if value is not None), default=None)


def _column(view: View) -> str | None:
    """The column of the key that grows with time; None: there is none, or the view closes its rows."""
    if not view.upserts:
        return None
    columns = view.output_columns
    return next((name for name in view.key if columns[name] in ("TIMESTAMP", *_NUMBERS)), None)


def _added(settings: "Settings", table: str, column: str, since: tuple[int, int], until: int) -> Iterator[First | None]:
    """The first value of the column in each file that was added after a version, up to another one.

    None is among them where that is not known, or where rows may have gone that no added file tells of.

    Args:
        since: the version, and when it was committed.
    """
    if until < since[0]:
        yield None
    for commit in lake.commits(settings, table):
        if commit.version <= since[0]:
            if (commit.version, commit.timestamp) != since:
                yield None
            return
        if commit.version <= until and not ledger.is_housekeeping(commit):
            yield from _firsts(commit, column)
    yield None


def _firsts(commit: "Commit", column: str) -> Iterator[First | None]:
    # A merge of ours writes each row again that it takes out of a file. Other commits may remove rows, and somebody else's merge.
    is_ours = commit.operation == "MERGE" and bool(commit.record)
    if (commit.removes and not is_ours) or sum(stats["numRecords"] for stats in commit.files) < commit.rows:
        yield None
    yield from (stats.get("minValues", {}).get(column) for stats in commit.files)
