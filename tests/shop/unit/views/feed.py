"""Runs a keyed view on records as both layers do, without Spark: for hundreds of cases.

The view's functions, ``advance`` and the live layer's ``Machine`` are the product's own. What Spark does before them is modelled
here: which rows count, and to which keys they go. The tests in tests/shop/integration/views run all of it through Spark.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.shop.oracles.record import Record
from tests.support.records import START, at
from tests.support.state_store import StateStore, as_rows

from lockstep.batch.compute import go_on
from lockstep.batch.saved_machines import SCHEMA
from lockstep.contracts import CONTRACTS
from lockstep.definition import Input, Keyed, states
from lockstep.definition.events import LIVE_COLUMNS, event, time_of
from lockstep.definition.keyed import advance, final, in_log_order
from lockstep.definition.states import micros
from lockstep.live.machine import Machines
from lockstep.live.watermarks import EventStream

# The keys of a row, as the view's SQL gives them.
Keys = Callable[[str, Mapping[str, Any]], Iterable[str]]
# The token of a value, by the value and the row's subject.
Token = Callable[[Any, Any], Any]
# A row with the columns of lockstep.definition.events.COLUMNS, and `_arrival`.
Routed = dict[str, Any]
# Milliseconds.
_BOUND = 2_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def route(
    view: Keyed, keys: Keys, records: Mapping[str, list[Record]], token: Token = lambda value, _: str(value)
) -> dict[str, list[Routed]]:
    """By key, the rows that reach the view's machine; ``token`` replaces personal values by themselves and their subject."""
    by_key: dict[str, list[Routed]] = defaultdict(list)
    for one in view.inputs:
        routed = _changes(one, keys, records[one.stream], token) if one.is_table else _events(view, one, keys, records)
        for key, row in routed:
            by_key[key].append(row)
    return by_key


def _events(view: Keyed, one: Input, keys: Keys, records: Mapping[str, list[Record]]) -> Iterator[tuple[str, Routed]]:
    for record in records[one.stream]:
        assert record.value is not None
        time = datetime.fromisoformat(record.value["event_time"])
        if record.arrival - time <= view.limit:
            row = _row(one, time, _data(one, record.value), record.arrival)
            row |= {"_id": record.value["event_id"], "_position": None}
            for key in keys(one.stream, record.value):
                yield key, row


def _changes(one: Input, keys: Keys, records: list[Record], token: Token) -> Iterator[tuple[str, Routed]]:
    contract = CONTRACTS[one.stream]
    for record in records:
        assert record.value is not None
        before, after, source = record.value["before"], record.value["after"], record.value["source"]
        image = after or before
        identity = "/".join(str(image[name]) for name in contract.unique_id)
        time = _EPOCH + timedelta(milliseconds=source["ts_ms"])
        personal = {name: image.get(name) and token(image[name], image[contract.subject]) for name in contract.pii}
        new_keys = [*keys(one.stream, image)]
        images = [(new_keys, image | personal, after is None)]
        if before and after:
            # At the keys that an update took the row from it is a delete. Silver does not keep old personal values.
            old_keys = [key for key in keys(one.stream, before) if key not in new_keys]
            images.append((old_keys, before | dict.fromkeys(contract.pii), True))
        for targets, values, deleted in images:
            row = _row(one, time, _data(one, values | {"_lsn": source["lsn"]}, _deleted=deleted), record.arrival)
            row |= {"_id": identity, "_position": f"{source['lsn']:020}/{source['lsn']:020}"}
            for key in targets:
                yield key, row


def _row(one: Input, time: datetime, data: str, arrival: datetime) -> Routed:
    micros = (time - _EPOCH) // timedelta(microseconds=1)
    return {"_time": micros, "_stream": one.stream, "_data": data, "_arrival": arrival}


def _data(one: Input, values: Mapping[str, Any], **more: Any) -> str:
    """The columns as Spark's ``to_json`` writes them: decimals as numbers, timestamps with microseconds and in UTC."""
    types = CONTRACTS[one.stream].columns
    texts = {name: _json(values.get(name), types.get(name, "")) for name in one.columns}
    texts |= {name: json.dumps(value) for name, value in more.items()}
    return "{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}"


def _json(value: Any, type_: str) -> str:
    if value is not None and type_.startswith("DECIMAL"):
        return str(value)
    if value is not None and type_ == "TIMESTAMP":
        instant = datetime.fromisoformat(value).astimezone(UTC)
        return json.dumps(instant.isoformat(timespec="microseconds").replace("+00:00", "Z"))
    return json.dumps(value)


def batch(view: Keyed, by_key: Mapping[str, list[Routed]], until: datetime) -> list[dict[str, Any]]:
    """The rows of the batch layer: for each key all changes in the order of the log, then all events."""
    result = []
    for rows in by_key.values():
        # Silver has each change and each event once.
        events = [event(row) for row in {(row["_stream"], row["_id"], row["_position"]): row for row in rows}.values()]
        _, emitted = advance(view, None, [*in_log_order(events), *sorted(e for e in events if not e.is_change)], until)
        result += [{"at": row["at"]} | {name: row.get(name) for name in view.columns} for row in final(view, emitted)]
    return result


def live(
    view: Keyed, by_key: Mapping[str, list[Routed]], until: datetime, cuts: Iterable[float], dice: Random | None = None
) -> list[dict[str, Any]]:
    """The rows of the live layer, which takes the records in micro-batches that end at the cuts (seconds) and at ``until``.

    With dice, changes come at any moment, in any order but that of one row, and some come twice.
    """
    result = []
    for rows in by_key.values():
        machine, emitted = LiveMachine(view), []
        queues: dict[Any, list[Routed]] = defaultdict(list)
        for row in rows:
            if row["_position"]:
                queues[row["_stream"], row["_id"]].append(row)
        low = datetime.min.replace(tzinfo=UTC)
        for high in [*map(at, sorted(cuts)), until]:
            events = [row for row in rows if not row["_position"] and low <= row["_arrival"] < high]
            deliveries = [[change] for change in _some(queues, dice if high < until else None)]
            deliveries.insert(dice.randint(0, len(deliveries)) if dice else len(deliveries), events)
            for delivered in deliveries:
                emitted += machine.deliver(*delivered)
                if dice and dice.random() < 0.1:
                    emitted += machine.deliver(*(row for row in delivered if row["_position"]))
            emitted += machine.pass_to(high)
            low = high
        result += final(view, emitted)
    return result


def in_steps(view: Keyed, by_key: Mapping[str, list[Routed]], until: datetime, dice: Random) -> list[dict[str, Any]]:
    """The rows of the batch layer when its machines go on from one roll-up to the next, of which four are at random moments."""
    changes: dict[Any, list[Routed]] = defaultdict(list)
    events = [row | {"_key": key} for key, rows in by_key.items() for row in rows if not row["_position"]]
    for key, rows in by_key.items():
        for row in {(r["_stream"], r["_id"], r["_position"]): r for r in rows if r["_position"]}.values():
            changes[key, row["_stream"], row["_id"]].append(row | {"_key": key})
    # Silver has each event once.
    events = [*{(row["_key"], row["_stream"], row["_id"]): row for row in events}.values()]
    times = [time_of(row) for row in events] or [START]
    span = max(times) - min(times) + timedelta(seconds=30)
    cuts = sorted(min(times) + span * dice.random() for _ in range(4))
    saved, emitted, low = SCHEMA.empty_table(), [], datetime.min.replace(tzinfo=UTC)
    for high in [*cuts, until]:
        new = [*_some(changes, dice if high < until else None), *(e for e in events if low <= time_of(e) < high)]
        rows, saved = go_on(view, saved, new, high, view.upserts)
        emitted += rows
        low = high
    kept = final(view, emitted)
    return [{"at": row["at"]} | {name: row.get(name) for name in view.columns} for row in kept]


def from_gold(view: Keyed, by_key: Mapping[str, list[Routed]], until: datetime, dice: Random) -> list[dict[str, Any]]:
    """The rows of batch until a random moment, and then of a live query that begins with batch's machines and all events."""
    times = [time_of(row) for rows in by_key.values() for row in rows if not row["_position"]] or [START]
    cut = min(times) + (max(times) - min(times) + timedelta(seconds=30)) * dice.random()
    result = []
    for key, rows in by_key.items():
        changes: dict[Any, list[Routed]] = defaultdict(list)
        for row in rows:
            if row["_position"]:
                changes[row["_stream"], row["_id"]].append(row)
        events = [row for row in rows if not row["_position"]]
        final_events = {(row["_stream"], row["_id"]): row for row in events if time_of(row) < cut}.values()
        new = [row | {"_key": key} for row in [*_some(changes, dice), *final_events]]
        emitted, saved = go_on(view, SCHEMA.empty_table(), new, cut, view.upserts)
        machine = LiveMachine(view)
        machine.begin(saved.to_pylist(), cut)
        emitted += machine.deliver(*events, *_some(changes, None))
        emitted += machine.pass_to(until)
        result += final(view, [{"at": row["at"]} | {name: row.get(name) for name in view.columns} for row in emitted])
    return result


def shuffled(view: Keyed, by_key: Mapping[str, list[Routed]], until: datetime, dice: Random) -> list[dict[str, Any]]:
    """The rows of the live layer, with changes that come in a random order and micro-batches that end at random."""
    arrivals = [(row["_arrival"] - START).total_seconds() for rows in by_key.values() for row in rows] or [0.0]
    cuts = [dice.uniform(min(arrivals) - 1, max(arrivals) + 30) for _ in range(4)]
    return live(view, by_key, until, cuts, dice)


def assert_every_way_gives(
    expected: Iterable[Mapping[str, Any]],
    view: Keyed,
    by_key: Mapping[str, list[Routed]],
    until: datetime,
    dice: Random,
) -> None:
    """The view has the expected rows in both layers, in whatever order the live one gets its records, and wherever it begins."""
    wanted = bag(expected)
    for name, rows in (
        ("batch", batch(view, by_key, until)),
        ("shuffled", shuffled(view, by_key, until, dice)),
        ("in_steps", in_steps(view, by_key, until, dice)),
        ("from_gold", from_gold(view, by_key, until, dice)),
    ):
        found = bag(rows)
        assert found == wanted, f"{name} lacks {wanted - found}, and has {found - wanted} that nobody expects"


def _some(queues: Mapping[Any, list[Routed]], dice: Random | None) -> list[Routed]:
    """Changes from the heads of the queues, in any order; without dice, all that are left."""
    taken = []
    while any(queues.values()) and (dice is None or dice.random() < 0.7):
        queue = (dice or Random(0)).choice([queue for queue in queues.values() if queue])
        taken.append(queue.pop(0))
    return taken


class LiveMachine:
    """The live layer's ``Machines`` with one key, with its state store in memory, and one partition of each topic."""

    def __init__(self, view: Keyed) -> None:
        self._streams = [stream for stream in view.streams if CONTRACTS[stream].kind == "events"]
        streams = {stream: EventStream([0], _BOUND) for stream in self._streams}
        self._view, self._machine, self._offset = view, Machines({view.name: view}, streams), 0
        self._machine.init(StateStore())  # type: ignore[arg-type]

    def begin(self, saved: Iterable[Mapping[str, Any]], until: datetime) -> None:
        """Begin with the machine of a roll-up, if there is one."""
        # As Spark writes it, without what is null.
        found = [{n: v for n, v in row.items() if n != "_timer" and v is not None} | {"_key": "key"} for row in saved]
        machines = json.dumps(found or [{}])
        initial = {"_label": self._view.name, "_until": micros(until), "_machines": machines}
        self._machine.handleInitialState(None, initial, None)  # type: ignore[arg-type]

    def deliver(self, *rows: Routed) -> list[dict[str, Any]]:
        """The rows that the machine emits when these arrive in one micro-batch."""
        in_order = sorted(rows, key=lambda row: row["_arrival"])
        return self._micro_batch([{"_view": self._view.name, "_key": "key", **row} for row in in_order])

    def pass_to(self, instant: datetime) -> list[dict[str, Any]]:
        """The rows that the machine emits when the watermark passes to the instant: a heartbeat comes in each topic."""
        arrival = instant + timedelta(milliseconds=_BOUND)
        nothing = dict.fromkeys(LIVE_COLUMNS) | {"_arrival": arrival}
        return self._micro_batch([nothing | {"_stream": stream} for stream in self._streams])

    def _micro_batch(self, rows: list[Routed]) -> list[dict[str, Any]]:
        if not rows:
            return []
        for row in rows:
            self._offset += 1
            row |= {"_partition": 0, "_offset": self._offset, "_timestamp": round(row["_arrival"].timestamp() * 1000)}
        return self._plain(self._machine.handleInputRows(None, as_rows(rows), None))

    def _plain(self, rows: Iterable[Any]) -> list[dict[str, Any]]:
        return [
            {name: self._value(name, states.loads(row["_row"])) for name in ("at", *self._view.columns)}
            for row in rows
            if row["_view"] is not None
        ]

    def _value(self, name: str, row: Mapping[str, Any]) -> Any:
        value = row.get(name)
        return float(value) if value is not None and self._view.output_columns[name] == "DOUBLE" else value


def bag(rows: Iterable[Mapping[str, Any]], without: str = "at") -> Counter[str]:
    """The rows as a bag that ignores their order, their column ``at`` and the spelling of decimals."""
    return Counter(str(sorted((name, _plain(value)) for name, value in row.items() if name != without)) for row in rows)


def _plain(value: Any) -> Any:
    return format(value.normalize(), "f") if isinstance(value, Decimal) else value
