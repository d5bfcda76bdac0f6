"""Roll up a keyed view: its machines go on from where the last roll-up left them, without Spark.

What it costs depends on the new rows and on the number of machines, and not on history. The rows are those that a computation of
all of history gives: however a machine's events are divided among calls, its rows are the same.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from itertools import islice
from operator import or_
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch.compute import go_on, machines, result
from lockstep.batch.saved_machines import SCHEMA, SavedMachines
from lockstep.contracts import CONTRACTS
from lockstep.definition import Keyed
from lockstep.definition.events import events, micros
from lockstep.definition.keyed import final
from lockstep.definition.machine import as_table
from lockstep.definition.tables import gold_of
from lockstep.definition.version import definition_version
from lockstep.definition.view import BEGINNING
from lockstep.ledger.ranges import Range, size, to_where, where_below

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from lockstep.definition.keyed import Row
    from lockstep.settings import Settings

# Live is at most a few roll-ups behind: reconciliation goes on from the machines of the last one that live has passed.
KEPT = 5
# So many new rows, some hundred megabytes, are given to saved machines in one task: a cycle that has fallen behind takes them. To
# compute all of history instead would put it further behind.
MOST_ROWS = 50_000
Silver = Mapping[str, "DataFrame"]


def roll_up(
    settings: "Settings",
    view: Keyed,
    newest: ledger.Entry | None,
    new: Mapping[str, Sequence[Range]],
    silver: Silver,
    until: datetime,
    record: dict[str, Any],
) -> None:
    """Bring gold up to an instant, and commit the record with the name of the file that has the machines.

    Where no machines fit, Spark computes them from history, and also gold's rows unless those come from a few new rows alone. The
    rows of a view that upserts may come from any, so its gold is replaced as a whole.

    Args:
        newest: gold's newest entry.
        new: by stream, the offsets that gold has not taken yet.
        silver: by stream, all rows up to the end of the new ones.
        until: gold will be final before this instant (UTC).
    """
    from lockstep.lake.small_commits import SmallCommits, same

    table = gold_of(view)
    low = (newest and newest.until) or BEGINNING
    files, txn = SavedMachines(settings, view), ledger.txn(table, record)
    rows_taken = sum(map(size, new.values()))
    saved = _saved(settings, view, newest) if rows_taken <= MOST_ROWS else None
    if saved is None and (view.upserts or not lake.is_small(rows_taken)):
        record["machines"] = files.save(_from_history(view, silver, until))
        lake.replace(result(view, silver, low, until), settings, table, view.interval(low, until), txn, record)
        _tidy(settings, files, table)
        return
    if saved is None and newest is not None:
        before = {s: rows.where(where_below(newest.ranges, CONTRACTS[s].topic)) for s, rows in silver.items()}
        saved = _from_history(view, before, low)
    out, after = process_new(view, saved if saved is not None else SCHEMA.empty_table(), new, silver, low, until)
    record["machines"] = files.save(after)
    rows = as_table(out, SmallCommits(settings, table).schema)
    if not out:
        lake.append_record(settings, table, txn, record)
    elif view.upserts:
        lake.merge(rows, settings, table, " AND ".join(map(same, view.key)), "true", txn, record)
    else:
        lake.replace(rows, settings, table, view.interval(low, until), txn, record)
    _tidy(settings, files, table)


def process_new(
    view: Keyed,
    saved: "pa.Table",
    new: Mapping[str, Sequence[Range]],
    silver: Silver,
    low: datetime,
    until: datetime,
) -> "tuple[list[Row], pa.Table]":
    """Give machines the rows that are new since they were saved.

    Args:
        saved: the machines when all events before ``low`` (UTC) were processed.
        new: by stream, the offsets that they have not seen.
        silver: by stream, all rows up to the end of the new ones.
        until: events before this instant (UTC) are processed.

    Returns:
        The new rows, and the machines after.
    """
    out, after = go_on(view, saved, _events(view, new, silver, low, until).toArrow().to_pylist(), until, view.upserts)
    return final(view, out), after


def machines_at(settings: "Settings", view: Keyed, entry: ledger.Entry) -> "pa.Table | None":
    """The machines at an entry of gold; None if there are none, or if what they come from has changed since."""
    if entry.machines is None or entry.definition != definition_version(view):
        return None
    fits = all(ledger.only_grew(settings, table, version) for table, version in entry.sources.items())
    return SavedMachines(settings, view).load(entry.machines) if fits else None


def kept(settings: "Settings", table: str) -> list[ledger.Entry]:
    """The entries of gold whose machines are kept, newest first."""
    return [*islice(ledger.entries(settings, table), KEPT)]


def _from_history(view: Keyed, silver: Silver, until: datetime) -> "pa.Table":
    return machines(view, silver, until).toArrow().cast(SCHEMA)


def _saved(settings: "Settings", view: Keyed, newest: ledger.Entry | None) -> "pa.Table | None":
    """The machines at gold's newest entry; None also if somebody else has changed gold since."""
    if newest is None or not ledger.untouched(settings, newest):
        return None
    return machines_at(settings, view, newest)


def _tidy(settings: "Settings", files: SavedMachines, table: str) -> None:
    files.remove_all_but([entry.machines for entry in kept(settings, table)])


def _events(
    view: Keyed, new: Mapping[str, Sequence[Range]], silver: Silver, low: datetime, until: datetime
) -> "DataFrame":
    """The changes that are new, and the events that are final now: those before ``until`` that were not before ``low``."""
    rows = {
        stream: of.where(to_where(new[stream], "_partition", "_offset"))
        if CONTRACTS[stream].kind == "changes"
        # The same condition as below, where files can be skipped by it.
        else of.where(reduce(or_, (_between(F.expr(r.time), low, until) for r in view.inputs if r.stream == stream)))
        for stream, of in silver.items()
    }
    is_change = F.col("_position").isNotNull()
    return (
        events({view.name: view}, rows)
        .where(is_change | _between(F.col("_time"), micros(low), micros(until)))
        .drop("_view", "_arrival")
    )


def _between(value: Any, low: Any, high: Any) -> Any:
    return (value >= F.lit(low)) & (value < F.lit(high))
