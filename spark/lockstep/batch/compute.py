"""Compute a view from silver, for an interval of time. Pure."""

from collections import defaultdict
from datetime import datetime
from functools import singledispatch
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from lockstep.batch.saved_machines import SCHEMA
from lockstep.definition import Keyed, View, Windowed
from lockstep.definition.columns import ddl
from lockstep.definition.events import as_dicts, event, events
from lockstep.definition.keyed import Event, in_log_order, last_of_each_key
from lockstep.definition.machine import Machine
from lockstep.definition.states import micros
from lockstep.definition.windowing import transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from lockstep.definition.keyed import Row
    from lockstep.definition.map_state import Texts

# The column with a row of gold, beside those of a saved machine.
_ROW = "_row"
_ROWS_AT_ONCE = 10_000


def result(view: View, silver: "Mapping[str, DataFrame]", low: datetime, high: datetime) -> "DataFrame":
    """The view's rows for the windows that start, or the instants that lie, in ``[low, high)`` (UTC).

    Args:
        silver: the log of each of the view's streams.
    """
    return _rows(view, silver, low, high).where(view.interval(low, high))


@singledispatch
def _rows(view: View, _silver: "Mapping[str, DataFrame]", _low: datetime, _high: datetime) -> "DataFrame":
    raise TypeError(f"{view.name} is a {type(view).__name__}, which no layer can run")


@_rows.register(Windowed)
def _windowed(view: Windowed, silver: "Mapping[str, DataFrame]", low: datetime, high: datetime) -> "DataFrame":
    time = F.col(view.event_time)
    rows = silver[view.input].where((time >= F.lit(low)) & (time < F.lit(high + view.size)))
    found = transform(view, rows)
    # Silver may have narrower types than the contract, until refine has run with it.
    return found.select(*(F.col(name).cast(kind).alias(name) for name, kind in view.output_columns.items()))


@_rows.register(Keyed)
def _keyed(view: Keyed, silver: "Mapping[str, DataFrame]", low: datetime, high: datetime) -> "DataFrame":
    return rows_of(rows_and_machines(view, silver, low, high))


def rows_and_machines(view: Keyed, silver: "Mapping[str, DataFrame]", low: datetime, until: datetime) -> "DataFrame":
    """What a view's machines give and remember when all events before ``until`` are processed, in one pass over history.

    Args:
        low: the rows of gold from this instant (UTC) on are complete.

    Returns:
        A row for each of gold's, of which :func:`rows_of` gives the columns, and those of ``saved_machines.SCHEMA``, which
        :func:`machines_of` gives.
    """
    events_of_view = _history(view, silver, low, until)
    columns = events_of_view.sparkSession.createDataFrame([], ddl(view.output_columns)).schema
    run, schema = _machines(view, until, columns)
    from pyspark.sql.pandas.types import from_arrow_schema

    # Not a group of Spark's for each key: to send one to Python and back costs more than most keys have to compute.
    in_order = events_of_view.repartition("_key").sortWithinPartitions("_key")
    return in_order.mapInArrow(run, from_arrow_schema(schema))


def rows_of(found: "DataFrame") -> "DataFrame":
    """The view's rows, of :func:`rows_and_machines`."""
    return found.where(F.col(_ROW).isNotNull()).select(f"{_ROW}.*")


def machines_of(found: "DataFrame") -> "DataFrame":
    """The saved machines, of :func:`rows_and_machines`."""
    return found.where(F.col(_ROW).isNull()).select(*SCHEMA.names)


def _history(view: Keyed, silver: "Mapping[str, DataFrame]", low: datetime, high: datetime) -> "DataFrame":
    """The events and changes on which the rows of the interval depend."""
    rows = events({view.name: view}, silver)
    time, is_change = F.col("_time"), F.col("_position").isNotNull()
    rows = rows.where(is_change | (time < micros(high)))
    return rows if view.lookback is None else rows.where(is_change | (time >= micros(low - view.lookback)))


def _in_order(events_of_key: "Iterable[Event]") -> list[Event]:
    """The changes of tables, and after them the events."""
    found = [*events_of_key]
    return [*in_log_order(found), *sorted(e for e in found if not e.is_change)]


def go_on(
    view: Keyed, saved: "pa.Table", rows: "Iterable[Mapping[str, Any]]", until: datetime, upserts: bool
) -> "tuple[list[Row], pa.Table]":
    """Give new events to machines, and call their timers before an instant (UTC).

    Args:
        saved: the machines before.
        rows: as :func:`~lockstep.definition.events.events` gives them; events that happened before ``until``.
        upserts: whether the view does.

    Returns:
        The new rows, and the machines after.
    """
    of_key: dict[str, list[Event]] = defaultdict(list)
    for row in rows:
        of_key[row["_key"]].append(event(row))
    # The other machines, which are most of them, stay in Arrow, and so do the buckets that nobody needs.
    names = _names(saved)
    due = saved.filter(pc.fill_null(pc.less(saved["_timer"], micros(until)), False))["_key"].to_pylist()
    keys = sorted({*of_key, *due})
    before = {row["_key"]: row["_machine"] for row in _chosen(saved, names, map(_name, keys)).to_pylist()}
    machines = {key: Machine.load(before.get(key)) for key in keys}
    needed = [_name(key, number) for key, machine in machines.items() for number in machine.needed(view, of_key[key])]
    buckets: dict[str, dict[int, str]] = defaultdict(dict)
    for row in _chosen(saved, names, needed).to_pylist():
        buckets[row["_key"]][row["_bucket"]] = row["_machine"]
    out: list[Row] = []
    after: list[Row] = []
    replaced = [*map(_name, before)]
    for key, machine in machines.items():
        rows_of_key, changed = machine.run(view, _in_order(of_key[key]), until, buckets[key])
        out += rows_of_key
        replaced += [_name(key, number) for number in changed]
        after += _saved(view, key, machine, changed, upserts)
    others = saved.filter(pc.invert(pc.is_in(names, pa.array(replaced, pa.string()))))
    return out, pa.concat_tables([others, pa.Table.from_pylist(after, schema=SCHEMA)])


def _saved(view: Keyed, key: str, machine: Machine, buckets: "Texts", upserts: bool) -> "Iterator[Row]":
    """The rows of ``saved_machines.SCHEMA`` for a machine and its buckets."""
    yield from ({"_key": key, "_bucket": number, "_machine": text} for number, text in buckets.items() if text)
    if not machine.is_over(upserts):
        timer = machine.next_timer(view)
        yield {"_key": key, "_timer": timer and micros(timer), "_machine": machine.dump()}


def _name(key: str, bucket: int | None = None) -> str:
    """What a row of saved machines is found by."""
    return f"{'' if bucket is None else bucket}/{key}"


def _names(saved: "pa.Table") -> "pa.ChunkedArray":
    """The name of each row."""
    buckets = pc.fill_null(saved["_bucket"].cast(pa.string()), "")
    return pc.binary_join_element_wise(buckets, saved["_key"], "/")


def _chosen(saved: "pa.Table", names: "pa.ChunkedArray", of: "Iterable[str]") -> "pa.Table":
    """The rows with some names."""
    return saved.filter(pc.is_in(names, pa.array([*of], pa.string())))


def _machines(
    view: Keyed, until: datetime, columns: Any
) -> "tuple[Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]], pa.Schema]":
    """What runs the machines of a partition, whose events are sorted by key, and the schema of what it gives."""
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = pa.schema([*SCHEMA, (_ROW, pa.struct([*to_arrow_schema(columns)]))])
    # Asked here: it depends on the contracts, and a worker of the server would have to load the project for them.
    upserts = view.upserts

    def run(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        found: list[Row] = []
        rows = (row for batch in batches for row in as_dicts(batch))
        for key, of_key in groupby(rows, itemgetter("_key")):
            machine = Machine()
            out, buckets = machine.run(view, _in_order(map(event, of_key)), until)
            found += ({_ROW: row} for row in (last_of_each_key(out, view.key) if upserts else out))
            found += _saved(view, key, machine, buckets, upserts)
            if len(found) >= _ROWS_AT_ONCE:
                yield pa.RecordBatch.from_pylist(found, schema)
                found = []
        yield pa.RecordBatch.from_pylist(found, schema)

    return run, schema
