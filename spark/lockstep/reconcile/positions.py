"""Explain the keys of an upserted view that differ only because one layer is ahead of the other in the log.

While records flow, that is nearly every key that differs. So the rows of both layers are computed from the machines that a
roll-up has saved, over the records since then, and not over history: first up to live's position, and from there on to gold's.
What is not exactly such a row is left to those who read history.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.batch.going_on import kept, machines_at, process_new
from lockstep.batch.new_events import Silver, Wanted, new_events
from lockstep.definition.machine import as_table
from lockstep.definition.tables import gold_of
from lockstep.definition.view import BEGINNING
from lockstep.reconcile.comparison import Comparison, Position, between
from lockstep.reconcile.difference import Cause, Difference
from lockstep.session import collect

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.definition import Keyed

# A place in the log, and the instant (UTC) before which all events have been processed there.
Point = tuple[Position, datetime]


def attribute_to_position(comparison: Comparison, view: "Keyed", differences: Sequence[Difference]) -> list[Difference]:
    """Name the cause *not yet seen* where both sides have exactly the rows of their positions in the log."""
    start = _start(comparison, view) if differences else None
    if start is None:
        return [*differences]
    from pyspark.sql.pandas.types import to_arrow_schema

    entry, machines = start
    keys = [d.key for d in differences]
    gold = lake.read(comparison.spark, comparison.settings, gold_of(view), entry.version)
    before, columns = comparison.as_json(keys, gold), gold.schema

    def move(machines: "pa.Table", start: Point, end: Point, silver: Silver) -> "tuple[dict[str, str], pa.Table]":
        """The rows that change between two points of the log, and the machines at the second."""
        (since, low), (position, until) = start, end
        new = {s: between(s, since, position) for s in view.streams}
        events = collect(new_events([Wanted(view, new, low, until)], silver))
        changed, after = process_new(view, machines, events, until)
        table = as_table(changed, to_arrow_schema(columns))
        return comparison.as_json(keys, comparison.spark.createDataFrame(table, columns)), after

    of_live = comparison.snapshot.position, comparison.snapshot.until
    changed_in_live, machines = move(machines, _point(entry), of_live, comparison.silver_of_live())
    live = before | changed_in_live
    # Live has read nothing that gold has not.
    changed_after, _ = move(machines, of_live, _point(comparison.entry), comparison.silver())
    batch = live | changed_after

    def explains(d: Difference) -> bool:
        doubled = d.live.doubled or d.batch.doubled
        return not doubled and (d.live.row, d.batch.row) == (live.get(d.key), batch.get(d.key))

    return [replace(d, live=d.live.wrong(Cause.NOT_YET_SEEN)) if explains(d) else d for d in differences]


def _start(comparison: Comparison, view: "Keyed") -> "tuple[ledger.Entry, pa.Table] | None":
    """The newest entry of gold that both layers have passed, and the machines there; None: no machines are kept."""
    snapshot = comparison.snapshot
    for entry in kept(comparison.settings, gold_of(view)):
        passed = all(end <= snapshot.position.get(t, {}).get(p, 0) for t, p, end in _ends(entry))
        if passed and entry.seq <= comparison.entry.seq and (entry.until or BEGINNING) <= snapshot.until:
            machines = machines_at(comparison.settings, view, entry)
            return None if machines is None else (entry, machines)
    return None


def _point(entry: ledger.Entry) -> Point:
    topics: dict[str, dict[int, int]] = {}
    for topic, partition, end in _ends(entry):
        topics.setdefault(topic, {})[partition] = end
    return topics, entry.until or BEGINNING


def _ends(entry: ledger.Entry) -> list[tuple[str, int, int]]:
    return [(r.topic, r.partition, r.end) for r in entry.ranges]
