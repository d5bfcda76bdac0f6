"""What Spark computes, in plain Python: the rule of outcomes, watermarks, windows, and the events of machines.

These are the functions of the platform that are written in Spark's API, restated. What decides inside of them is the platform's
own where it is no Spark: predicates in SQL, windows, machines.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from tests.support.simulation import sql
from tests.support.simulation.kafka import Form, Record
from tests.support.simulation.lake import Row, Rows

from lockstep.batch import compute
from lockstep.batch.new_events import Wanted
from lockstep.batch.saved_machines import SCHEMA
from lockstep.batch.summary import Summary, summary_of_few
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Keyed, View, Windowed
from lockstep.definition.columns import FIRST_GENERATION, POSITION
from lockstep.definition.events import event
from lockstep.definition.keyed import Input, advance, last_of_each_key
from lockstep.definition.registry import VIEWS
from lockstep.definition.states import micros
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.definition.view import BEGINNING, EPOCH, Interval
from lockstep.ledger.event_time import newest_at
from lockstep.ledger.ranges import Range, to_where
from lockstep.refine.classified import COMMIT, OUTCOMES, Commit
from lockstep.refine.source_order import SourceWentBack
from lockstep.replay.plan import Part, Plan
from lockstep.replay.runs import overlap, runs_of
from lockstep.replay.stages import Shadowed, TableDiff

_MILLISECOND = timedelta(milliseconds=1)


def at(milliseconds: int) -> datetime:
    """The time (UTC) of milliseconds since the epoch."""
    return EPOCH + _MILLISECOND * milliseconds


def aware(moment: datetime) -> datetime:
    """A time in UTC. Spark hands out times without a zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def bronze_row(record: Record) -> Row:
    """A record in bronze's columns. The value is kept as an object."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": at(record.timestamp),
        "form": record.form,
        "value": record.value,
    }


# refine


def parse(raw: Iterable[Row], contract: Contract) -> Rows:
    """As :func:`lockstep.refine.parse.parse`."""
    return Rows(_parsed(row, contract) for row in raw)


def _parsed(row: Row, contract: Contract) -> Row:
    value = row["value"] if row["form"] is Form.DATA else None
    of_record = {
        "_topic": row["topic"],
        "_partition": row["partition"],
        "_offset": row["offset"],
        "_arrival": row["timestamp"],
        "_erased": False,
        "_marker": row["form"] is Form.HEARTBEAT,
        "_value": row["value"],
        "_key": None,
    }
    columns = dict.fromkeys(contract.columns) if value is None else {name: value.get(name) for name in contract.columns}
    more: dict[str, Any] = {}
    if contract.kind == "changes":
        names = ("_op", "_lsn", "_commit_lsn", "_committed_at", "_deleted", "_before")
        more = dict.fromkeys(names) if value is None else {name: value.get(name) for name in names}
        more |= {"_generation": FIRST_GENERATION, "_truncates": False, "_ends_snapshot": False, "_by_us": False}
    parsed = columns | of_record | more
    return parsed | {"_reason": None if parsed["_marker"] else _reason(parsed, contract, value is None)}


def _reason(row: Row, contract: Contract, broken: bool) -> str | None:
    if broken:
        return "malformed"
    if missing := [name for name in contract.required if row[name] is None]:
        return f"missing {missing[0]}"
    if contract.kind == "events" and row[contract.event_time] - row["_arrival"] > contract.max_clock_skew:
        return "from the future"
    return None


def silver_rows(raw: Rows, contract: Contract, before: Mapping[int, int], *_: Any) -> Rows:
    """As :func:`lockstep.refine.rows.silver_rows`. No record has fields that its contract does not name."""
    return _with_watermark(parse(raw, contract), contract, before).withColumn("_unknown", None)


def _with_watermark(parsed: Rows, contract: Contract, before: Mapping[int, int]) -> Rows:
    if contract.kind == "changes":
        return parsed
    newest = {partition: at(milliseconds) for partition, milliseconds in before.items()}
    found = []
    for row in sorted(parsed, key=_place):
        partition = row["_partition"]
        newest[partition] = max(row["_arrival"], newest.get(partition, row["_arrival"]))
        found.append({**row, "_watermark": newest[partition] - contract.max_out_of_orderness})
    return Rows(found)


def _place(row: Row) -> tuple[int, int]:
    return row["_partition"], row["_offset"]


def _identity(row: Row, contract: Contract) -> tuple[Any, ...]:
    names = (*contract.unique_id, *POSITION) if contract.kind == "changes" else contract.unique_id
    return tuple(row[name] for name in names)


def _is_good(row: Row) -> bool:
    return not row["_marker"] and row["_reason"] is None


def with_order(parsed: Rows, before: Mapping[int, Commit]) -> Rows:
    """As :func:`lockstep.refine.source_order.with_order`."""
    newest, found = dict(before), []
    for row in sorted(parsed, key=_place):
        partition, is_streamed = row["_partition"], _is_good(row) and row["_op"] != "r"
        commit, earlier = _commit(row), newest.get(partition)
        fallen = _is_good(row) and earlier is not None and commit < earlier
        found.append({**row, "_streamed": is_streamed, "_fallen": fallen})
        if is_streamed:
            newest[partition] = max(commit, earlier or commit)
    return Rows(found)


def _commit(row: Row) -> Commit:
    generation, lsn = (row[name] for name in COMMIT)
    return generation, lsn


def check_order(_spark: Any, world: Any, contract: Contract, tables: Tables, rows: Rows) -> None:
    """As :func:`lockstep.refine.source_order.check_order`. There is one generation, so none follows."""
    change = (*contract.unique_id, "_lsn")
    good = Rows(row for row in rows if row["_outcome"] == "silver")
    kept = [*(row for row in good if not row["_fallen"]), *world.rows(tables.log)]
    known = {tuple(row[name] for name in change) for row in kept}
    for row in good:
        if row["_fallen"] and tuple(row[name] for name in change) not in known:
            raise SourceWentBack(f"{contract.topic}: the change at offset {row['_offset']} was never sent before")


def with_ended(changes: Rows, truncate: Any) -> Rows:
    """As :func:`lockstep.refine.truncates.with_ended`. No table is truncated."""
    assert truncate is None, truncate
    return changes.withColumn("_ended", False)


def classify(
    parsed: Rows,
    earlier: Rows | None,
    contract: Contract,
    order: Sequence[str] = ("_partition", "_offset"),
    span: timedelta | None = None,
) -> Rows:
    """As :func:`lockstep.refine.duplicates.classify`; it also trusts ``span`` where that one does."""
    kept_at: dict[Any, datetime] = {}
    for row in earlier or ():
        identity = _identity(row, contract)
        kept_at[identity] = max(row["_arrival"], kept_at.get(identity, row["_arrival"]))
    once = span is not None and span <= contract.dedup_window
    kept_now: set[Any] = set()
    found = []
    for row in sorted(parsed, key=lambda row: tuple(row[name] for name in order)):
        if row["_marker"]:
            outcome = "markers"
        elif row["_reason"] is not None:
            outcome = "quarantined"
        else:
            identity = _identity(row, contract)
            is_free = identity not in kept_at or row["_arrival"] - kept_at[identity] > contract.dedup_window
            outcome = "silver" if is_free and not (once and identity in kept_now) else "duplicates"
            if outcome == "silver":
                kept_at[identity] = row["_arrival"]
                kept_now.add(identity)
        found.append({**row, "_outcome": outcome})
    return Rows(found)


def remembered(log: Rows, oldest: datetime | None, contract: Contract) -> Rows:
    """As :func:`lockstep.refine.duplicates.remembered`."""
    if oldest is None:
        return Rows()
    return Rows(row for row in log if row["_arrival"] >= aware(oldest) - contract.dedup_window)


def oldest_of(raw: Rows) -> datetime | None:
    """As :func:`lockstep.refine.duplicates.oldest_of`."""
    return min((row["timestamp"] for row in raw), default=None)


class FoundRows:
    """As :class:`lockstep.refine.classified.Classified`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def counts(self) -> dict[str, int]:
        found = Counter(row["_outcome"] for row in self._rows)
        return {outcome: found[outcome] for outcome in OUTCOMES}

    def newest_timestamps(self) -> dict[int, int]:
        newest: dict[int, int] = {}
        for row in self._rows:
            arrival = (row["_arrival"] - EPOCH) // _MILLISECOND
            newest[row["_partition"]] = max(arrival, newest.get(row["_partition"], arrival))
        return newest

    def unknown(self) -> dict[str, int]:
        return {}

    def any(self, flag: str) -> bool:
        return any(row[flag] for row in self._rows)

    def newest_commits(self) -> dict[int, Commit]:
        found: dict[int, Commit] = {}
        for row in self._rows:
            if row["_streamed"]:
                found[row["_partition"]] = max(_commit(row), found.get(row["_partition"], _commit(row)))
        return found

    def in_spark(self, _spark: Any, /) -> Rows:
        return self._rows

    def silver(self, columns: list[str]) -> Rows:
        return Rows(row for row in self._rows if row["_outcome"] == "silver").select(*columns)

    def quarantined(self, ranges: list[Range], run_id: str, columns: list[str]) -> Rows:
        bad = Rows(row for row in self._rows if row["_outcome"] == "quarantined")
        return Rows({**row, "_run_id": run_id} for row in bad.where(to_where(ranges, "_partition", "_offset"))).select(
            *columns
        )

    def newest(self, key: tuple[str, ...], columns: list[str]) -> Rows:
        return newest(self.silver(columns), key)


def newest(changes: Rows, key: tuple[str, ...]) -> Rows:
    """As :func:`lockstep.refine.classified.newest`."""
    ordered = sorted(changes, key=lambda row: tuple(row[name] for name in (*POSITION, "_offset")))
    return Rows({tuple(row[name] for name in key): row for row in ordered}.values())


def newest_of_each(rows: pa.Table, key: Sequence[str], *order: str) -> pa.Table:
    """As :func:`lockstep.lake.small_commits.newest`, which starts threads."""
    ordered = sorted(rows.to_pylist(), key=lambda row: tuple(row[name] for name in order))
    return pa.Table.from_pylist([*{tuple(row[name] for name in key): row for row in ordered}.values()], rows.schema)


# views


def summary(view: View, rows: Mapping[str, Rows], final: datetime = BEGINNING) -> Summary:
    """As :func:`lockstep.batch.summary.summary`: by the rule of the few."""
    times = {stream: (*view.arrived_by, time) if time else ("_arrival",) for stream, time in view.times.items()}
    return summary_of_few(view, {stream: arrow(rows[stream], names) for stream, names in times.items()}, final)


def arrow(rows: Rows, names: Sequence[str]) -> pa.Table:
    """Columns with times of rows, as Arrow."""
    schema = pa.schema([(name, pa.timestamp("us", tz="UTC")) for name in names])
    return pa.Table.from_pylist([{name: row[name] for name in names} for row in rows], schema)


def windows(view: Windowed, rows: Iterable[Row]) -> dict[tuple[datetime, str], tuple[int, int]]:
    """The aggregation of windowed views: by start and user, how many clicks, and the sum of their amounts."""
    found: dict[tuple[datetime, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        time = row[view.event_time]
        start = EPOCH + (time - EPOCH) // view.slide * view.slide
        while start + view.size > time:
            clicks, amount = found[start, row["user_id"]]
            found[start, row["user_id"]] = clicks + 1, amount + row["amount"]
            start -= view.slide
    return found


def window_rows(view: Windowed, of: Mapping[tuple[datetime, str], tuple[int, int]]) -> Rows:
    """The same as rows."""
    return Rows(
        {"window_start": start, "window_end": start + view.size, "user_id": user, "clicks": clicks, "amount": amount}
        for (start, user), (clicks, amount) in of.items()
    )


def result(view: View, silver: Mapping[str, Rows], low: datetime, high: datetime) -> Rows:
    """As :func:`lockstep.batch.compute.result`."""
    low, high = aware(low), aware(high)
    if isinstance(view, Windowed):
        inside = (row for row in silver[view.input] if low <= row[view.event_time] < high + view.size)
        return window_rows(view, windows(view, Rows(inside).where(view.on_time))).where(view.interval(low, high))
    assert isinstance(view, Keyed)
    found: list[Row] = []
    for events_of_key in _by_key(_history(view, silver, low, high)).values():
        _, rows = advance(view, None, compute._in_order(map(event, events_of_key)), high)
        found += last_of_each_key(rows, view.key) if view.upserts else rows
    return Rows(found).where(view.interval(low, high))


class Collected:
    """What Spark would hand out as Arrow."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def _to_table(self) -> tuple[Any, None]:
        return self._rows, None


@contextmanager
def from_history(
    view: Keyed, silver: Mapping[str, Rows], low: datetime, until: datetime
) -> Iterator[tuple[Rows, pa.Table]]:
    """As :func:`lockstep.batch.going_on.from_history`."""
    yield result(view, silver, low, until), machines_from_history(view, silver, until)


def machines_from_history(view: Keyed, silver: Mapping[str, Rows], until: datetime) -> pa.Table:
    """As :func:`lockstep.batch.going_on.machines_from_history`."""
    events_of_view = _history(view, silver, until, until)
    return compute.go_on(view, SCHEMA.empty_table(), events_of_view, until, view.upserts)[1]


def new_events(wanted: Sequence[Wanted], silver: Mapping[str, Rows]) -> Collected:
    """As :func:`lockstep.batch.new_events.new_events`."""
    found = [e for one in wanted for s in one.view.streams for e in _new_events(one, s, silver[s])]
    return Collected(pa.Table.from_pylist(found))


def _new_events(one: Wanted, stream: str, rows: Rows) -> Iterator[Row]:
    if CONTRACTS[stream].kind == "changes":
        yield from events(one.view, stream, rows.where(to_where(one.ranges[stream], "_partition", "_offset")))
    else:
        low, until = micros(one.low), micros(one.until)
        yield from (e for e in events(one.view, stream, rows) if low <= e["_time"] < until)


def _history(view: Keyed, silver: Mapping[str, Rows], low: datetime, high: datetime) -> list[Row]:
    since = None if view.lookback is None else micros(low - view.lookback)
    return [
        e
        for stream, rows in silver.items()
        for e in events(view, stream, rows)
        if e["_position"] is not None or (e["_time"] < micros(high) and (since is None or e["_time"] >= since))
    ]


def events(view: Keyed, stream: str, rows: Rows) -> Iterator[Row]:
    """As :func:`lockstep.definition.events.events`, of one stream."""
    contract = CONTRACTS[stream]
    for read in view.inputs:
        if read.stream == stream:
            on_time = rows if read.is_table else rows.where(view.counts(read.time))
            for row in on_time.where(read.where):
                keys = dict.fromkeys(key for key in sql.evaluate(read.machines, row) if key is not None)
                yield from (_event(read, contract, row, key) for key in keys)


def _event(read: Input, contract: Contract, row: Row, key: str) -> Row:
    columns = (*read.columns, "_deleted") if read.is_table else read.columns
    position = f"{row['_generation']:06}/{row['_commit_lsn']:020}/{row['_lsn']:020}" if read.is_table else None
    return {
        "_key": key,
        "_time": micros(sql.evaluate(read.time, row)),
        "_id": "/".join(str(row[name]) for name in contract.unique_id),
        "_stream": contract.name,
        "_position": position,
        "_data": json.dumps({name: row[name] for name in columns}),
        **of_record(row),
    }


def of_record(row: Row) -> Row:
    """Which record a row comes from, as the live layer has it."""
    timestamp = (row["_arrival"] - EPOCH) // _MILLISECOND
    return {"_partition": row["_partition"], "_offset": row["_offset"], "_timestamp": timestamp}


def _by_key(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["_key"]].append(row)
    return found


# replay


def extent(view: View, rows: Rows, event_time: str) -> Interval | None:
    """As ``lockstep.replay.shadow._extent``."""
    times = [row[event_time] for row in rows]
    return view.touched_by(min(times), max(times)) if times else None


def windows_of(view: Windowed, rows: Rows) -> Rows:
    """As ``lockstep.replay.undo._windows_of``."""
    return Rows({"window_start": start} for start, _ in windows(view, rows))


def counted_by_outcome(rows: Rows) -> dict[str, int]:
    """As :func:`lockstep.refine.classified.counted`."""
    return FoundRows(rows).counts()


def classified_again(_spark: Any, world: Any, contract: Contract, part: Part, raw: Rows, log: Rows) -> Rows:
    """As ``lockstep.replay.shadow_streams._classified``."""
    wider = [Range(r.topic, r.topic_id, r.partition, max(r.start - 1, 0), r.end) for r in part.ranges]
    entries = [run.entry for run in runs_of(world, Tables.of(contract).log, "_arrival", wider)]
    parsed = silver_rows(raw, contract, newest_at(entries, {r.partition: r.start for r in part.ranges}))
    taken = [(e.seq, r) for e in entries for r in e.ranges if overlap((r,), part.ranges)]
    of_run = {(r.partition, n): seq for seq, r in taken for n in range(r.start, r.end)}
    rows = Rows({**row, "_run": of_run[_place(row)]} for row in parsed)
    earlier = [Range(r.topic, r.topic_id, r.partition, 0, r.start) for r in part.ranges]
    known = remembered(log.where(to_where(earlier, "_partition", "_offset")), oldest_of(raw), contract)
    return classify(rows, known, contract, order=("_run", "_partition", "_offset"))


def diff(_spark: Any, world: Any, plan: Plan, replay: str, shadowed: Shadowed) -> dict[str, TableDiff]:
    """As :func:`lockstep.replay.diff.diff`, with each table as one window."""
    found = {}
    for part in plan.parts:
        if plan.silver_part(part.stream):
            table = Tables.of(CONTRACTS[part.stream]).log
            found[table] = _table_diff(world, table, replay, world.lake.read(table).where(part.where))
    for target in plan.targets:
        view, shadow = VIEWS[target.view], shadowed.gold[target.view]
        if shadow.span is not None:
            old = world.lake.read(gold_of(view), shadow.version).where(view.interval(*shadow.span))
            found[gold_of(view)] = _table_diff(world, gold_of(view), replay, old)
    return found


def _table_diff(world: Any, table: str, replay: str, old: Rows) -> TableDiff:
    new = world.lake.read(shadow_of(table, replay))
    same = not old.exceptAll(new) and not new.exceptAll(old)
    return TableDiff(windows=1, equal=int(same), changed=int(not same))
