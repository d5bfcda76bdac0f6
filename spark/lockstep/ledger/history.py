"""The whole ledger of a table: what its log still has, and before that what ``ops.ledger`` has.

A log is kept for days. Who asks for older entries says in SQL which ones, so that no more of the archive is read.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.definition.view import literal
from lockstep.lake import Commit
from lockstep.ledger import archive
from lockstep.ledger.entries import Entry, entries, entry
from lockstep.ledger.planning import plan_downstream
from lockstep.ledger.ranges import Range

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Delta cuts the timestamps of its statistics to milliseconds: the last row may have arrived so much later.
STATISTICS_STEP = timedelta(milliseconds=1)


def recorded(settings: "Settings", table: str, where: str) -> Iterator[Commit]:
    """The commits of the table's ledger, newest first: all that the log has, and older ones that match ``where``.

    Args:
        where: SQL over the columns of ``ops.ledger``.
    """
    oldest = 0
    for commit in lake.commits(settings, table):
        oldest = commit.version
        if "ranges" in commit.record:
            yield commit
    if oldest:
        yield from archive.read(settings, table, f"version < {oldest} AND ({where})")


def position(settings: "Settings", table: str) -> list[Range]:
    """Per partition, all offsets that the ledger covers, of a table that has the rows of one topic."""
    newest = next(entries(settings, table), None)
    first = origin(settings, table) if newest else {}
    return [Range(r.topic, r.topic_id, r.partition, first[r.partition], r.end) for r in newest.ranges] if newest else []


def origin(settings: "Settings", table: str) -> dict[int, int]:
    """Per partition, the first offset that the ledger covers, of a table that has the rows of one topic."""
    archived = archive.archived(settings, table)
    first: dict[int, int] = {}
    for newer in itertools.takewhile(lambda one: one.seq > archived.seq, entries(settings, table)):
        first |= {r.partition: r.start for r in newer.ranges}
    return first | dict(archived.origin)


def pending(settings: "Settings", source: Entry | None, newest: Entry | None, max_offsets: int) -> list[Range]:
    """The ranges that a downstream table has not taken from its source yet, at most ``max_offsets`` offsets.

    A partition that the table has not seen starts where the source's ledger started.

    Args:
        source: the newest entry of the source; None: there is nothing to take.
        newest: the newest entry of the downstream table.
    """
    if source is None:
        return []
    topics = {r.topic for r in source.ranges}
    previous = [r for r in newest.ranges if r.topic in topics] if newest else []
    now = {r.topic: r.topic_id for r in source.ranges}
    if any(r.topic_id != now[r.topic] for r in previous):
        earlier = {r.topic_id for e in map(entry, recorded(settings, source.table, "true")) for r in e.ranges}
        # The source's own ledger goes on under another id, for which somebody has signed.
        previous = [replace(r, topic_id=now[r.topic]) if r.topic_id in earlier else r for r in previous]
    new = {r.partition for r in source.ranges} - {r.partition for r in previous}
    return plan_downstream(previous, source.ranges, origin(settings, source.table) if new else {}, max_offsets)


def containing(table: str, ranges: Iterable[Range]) -> str:
    """A predicate for :func:`recorded`: entries of the table that took any of these offsets."""
    parts = [
        f"(r['partition'] = {r.partition} AND r['start'] < {r.end} AND r['end'] > {r.start})" for r in ranges if r.size
    ]
    # All parts are integers, and names of the platform's own.
    taken = f"SELECT seq AS s, unnest(ranges) AS r FROM slice WHERE \"table\" = '{table}'"  # noqa: S608
    return f"seq IN (SELECT s FROM ({taken}) WHERE {' OR '.join(parts)})" if parts else "false"  # noqa: S608


def within(start: datetime, end: datetime) -> str:
    """A predicate for :func:`recorded`: entries of bronze or silver of which a row may have arrived in ``[start, end]`` (UTC)."""
    # The archive has the times as the statistics have them, which are cut to milliseconds.
    return f'("first" IS NULL OR ("first" <= {literal(end)} AND "last" >= {literal(start - STATISTICS_STEP)}))'
