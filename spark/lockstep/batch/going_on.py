"""Roll up a keyed view: its machines go on from where the last roll-up left them, without Spark.

What it costs depends on the new rows and on the number of machines, and not on history. The rows are those that a computation of
all of history gives: however a machine's events are divided among calls, its rows are the same.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lockstep import lake, ledger
from lockstep.batch.compute import go_on, machines_of, rows_and_machines, rows_of
from lockstep.batch.new_events import MOST_ROWS, Silver
from lockstep.batch.plan import Plan
from lockstep.batch.saved_machines import SCHEMA, SavedMachines
from lockstep.contracts import CONTRACTS
from lockstep.definition import Keyed
from lockstep.definition.events import as_dicts
from lockstep.definition.keyed import final
from lockstep.definition.machine import as_table
from lockstep.definition.tables import gold_of
from lockstep.definition.version import definition_version
from lockstep.failpoints import failpoint
from lockstep.ledger.ranges import where_below
from lockstep.session import collect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.definition.keyed import Row
    from lockstep.settings import Settings

# Live is at most a few roll-ups behind: reconciliation goes on from the machines of the last one that live has passed.
KEPT = 5
# Events of a view that are Python's objects at a time: a kilobyte or two each.
AT_ONCE = 10_000


def roll_up(
    settings: "Settings",
    view: Keyed,
    plan: Plan,
    silver: Silver,
    new_events: "Callable[[], pa.Table]",
    record: dict[str, Any],
) -> None:
    """Bring gold up to the plan's ``until``, and commit the record with the name of the file that has the machines.

    Where no machines fit, Spark computes them from history, and also gold's rows unless those come from a few new rows alone. The
    rows of a view that upserts may come from any, so its gold is replaced as a whole.

    Args:
        silver: by stream, all rows up to the end of the new ones.
        new_events: finds the view's new events (:func:`~lockstep.batch.new_events.new_events`).
    """
    from lockstep.lake.small_commits import SmallCommits

    table, low, until = gold_of(view), plan.low, plan.until
    files, txn = SavedMachines(settings, view.name), ledger.txn(table, record)
    saved = newest_machines(settings, view, plan.newest) if plan.size <= MOST_ROWS else None
    if saved is None and (view.upserts or not lake.is_small(plan.size)):
        with from_history(view, silver, low, until) as (rows_of_gold, after):
            record["machines"] = files.save(after)
            failpoint("machines-saved")
            lake.replace(rows_of_gold, settings, table, view.interval(low, until), txn, record)
        _tidy(settings, files, table)
        return
    if saved is None and plan.newest is not None:
        before = {s: rows.where(where_below(plan.newest.ranges, CONTRACTS[s].topic)) for s, rows in silver.items()}
        saved = machines_from_history(view, before, low)
    out, after = process_new(view, saved if saved is not None else SCHEMA.empty_table(), new_events(), until)
    record["machines"] = files.save(after)
    failpoint("machines-saved")
    rows = as_table(out, SmallCommits(settings, table).schema)
    if not out:
        lake.append_record(settings, table, txn, record)
    elif view.upserts:
        lake.merge(rows, settings, table, view.key, "true", txn, record)
    else:
        lake.replace(rows, settings, table, view.interval(low, until), txn, record)
    _tidy(settings, files, table)


@contextmanager
def from_history(view: Keyed, silver: Silver, low: datetime, until: datetime) -> "Iterator[tuple[DataFrame, pa.Table]]":
    """Compute a view from all of its history, once: its rows in ``[low, until)`` (UTC), and its machines then.

    The rows are kept in Spark's memory until the block ends.
    """
    found = rows_and_machines(view, silver, low, until).persist()
    try:
        yield rows_of(found).where(view.interval(low, until)), collect(machines_of(found)).cast(SCHEMA)
    finally:
        found.unpersist()


def machines_from_history(view: Keyed, silver: Silver, until: datetime) -> pa.Table:
    """The machines of a view when all events before an instant (UTC) are processed."""
    return collect(machines_of(rows_and_machines(view, silver, until, until))).cast(SCHEMA)


def process_new(view: Keyed, saved: pa.Table, new_events: pa.Table, until: datetime) -> "tuple[list[Row], pa.Table]":
    """Give machines the events that are new since they were saved, and call their timers before an instant (UTC).

    Returns:
        The new rows, and the machines after.
    """
    out: list[Row] = []
    after = []
    for machines_before, events in _by_keys(saved, new_events):
        rows, machines_after = go_on(view, machines_before, as_dicts(events), until, view.upserts)
        out = final(view, out + rows)
        after.append(machines_after)
    return out, pa.concat_tables(after)


def _by_keys(saved: pa.Table, new_events: pa.Table) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The machines and their events, some keys at a time where the events are many."""
    pieces = -(-len(new_events) // AT_ONCE)
    if pieces <= 1:
        yield saved, new_events
        return
    keys = sorted({*saved["_key"].to_pylist(), *new_events["_key"].to_pylist()})
    size = -(-len(keys) // pieces)
    for start in range(0, len(keys), size):
        own = pa.array(keys[start : start + size], pa.string())
        machines_before, events = (rows.filter(pc.is_in(rows["_key"], value_set=own)) for rows in (saved, new_events))
        yield machines_before, events


def machines_at(settings: "Settings", view: Keyed, entry: ledger.Entry) -> pa.Table | None:
    """The machines at an entry of gold; None if there are none, or if what they come from has changed since."""
    if entry.machines is None or entry.definition != definition_version(view):
        return None
    fits = all(ledger.only_grew(settings, table, version) for table, version in entry.sources.items())
    return SavedMachines(settings, view.name).load(entry.machines) if fits else None


def newest_machines(settings: "Settings", view: Keyed, newest: ledger.Entry | None) -> pa.Table | None:
    """The machines at gold's newest entry, as :func:`machines_at`; None also if somebody else has changed gold since."""
    if newest is None or not ledger.untouched(settings, newest):
        return None
    return machines_at(settings, view, newest)


def kept(settings: "Settings", table: str) -> list[ledger.Entry]:
    """The entries of gold whose machines are kept, newest first."""
    return [*islice(ledger.entries(settings, table), KEPT)]


def _tidy(settings: "Settings", files: SavedMachines, table: str) -> None:
    files.remove_all_but([entry.machines for entry in kept(settings, table)])
