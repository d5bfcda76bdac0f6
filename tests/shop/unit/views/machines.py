"""Feeding a keyed view's pure machines from records, as silver would: plain Python, for hundreds of cases."""

import itertools
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from tests.shop.oracles.changes import history
from tests.shop.oracles.record import Record, accepted, on_time, parsed

from lockstep.contracts import CONTRACTS
from lockstep.definition import Event, Keyed, states
from lockstep.definition.keyed import advance, final, in_log_order

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
Keys = Callable[[str, dict[str, Any]], list[str]]
Fed = list[tuple[str, Event]]


def at(seconds: float) -> datetime:
    """So many seconds after the start."""
    return START + timedelta(seconds=seconds)


def changed(
    stream: str, lsn: int, seconds: float, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> Record:
    """A change as Debezium writes it."""
    op = "d" if after is None else "c" if before is None else "u"
    source = {"lsn": lsn, "ts_ms": round(at(seconds).timestamp() * 1000), "sequence": f'["{lsn}","{lsn}"]'}
    value = {"before": before, "after": after, "op": op, "source": source}
    return Record(stream, 0, lsn, at(seconds), value)


def happened(stream: str, offset: int, seconds: float, arrives_after: float = 0.5, **payload: Any) -> Record:
    """An event."""
    value = {"event_id": f"e{offset}", "event_time": at(seconds).isoformat()} | payload
    return Record(stream, 0, offset, at(seconds + arrives_after), value)


def table(stream: str, identity: tuple[str, ...], rows: list[dict[str, Any] | None]) -> list[Record]:
    """The changes that make a table's rows one after the other; every third time that a row comes again, it goes."""
    now: dict[Any, Any] = {}
    records = []
    for lsn, row in enumerate(rows, 1):
        key = tuple(row[name] for name in identity)
        before = now.get(key)
        after = None if before is not None and lsn % 3 == 0 else row
        now[key] = after
        records.append(changed(stream, lsn, lsn * 7, before, after))
    return records


def fed(view: Keyed, keys: Keys, records: Mapping[str, list[Record]], tokenise: Callable[..., Any]) -> Fed:
    """The events of all of the view's machines, with their keys; an update that moves a row is a delete at its old key."""
    found: Fed = []
    for one in view.inputs:
        contract = CONTRACTS[one.stream]
        if not one.is_table:
            for record in on_time(accepted(records[one.stream]), view.limit.total_seconds()):
                data = {name: record.value[name] for name in one.columns}
                event = Event(parsed(record.value["event_time"]), record.value["event_id"], one.stream, _plain(data))
                found += ((key, event) for key in keys(one.stream, record.value))
            continue
        for change in history(records[one.stream], contract.required):
            row = change.after or change.before or {}
            identity = "/".join(str(row[name]) for name in contract.unique_id)
            position = f"{change.place[0]:020}/{change.place[1]:020}"
            now = keys(one.stream, row)
            images = [(now, row, change.after is None)]
            if change.after is not None and change.before is not None:
                images.insert(0, ([k for k in keys(one.stream, change.before) if k not in now], change.before, True))
            for targets, image, gone in images:
                hidden = {name: tokenise(image.get(name)) for name in contract.pii}
                full = image | hidden | {"_lsn": change.place[1], "_deleted": gone}
                data = {name: full.get(name) for name in (*one.columns, "_deleted")}
                event = Event(change.committed, identity, one.stream, _plain(data), position)
                found += ((key, event) for key in targets)
    return found


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """As it comes out of JSON, with exact decimals."""
    exact = re.compile(r"-?\d+\.\d+")
    return {k: Decimal(v) if isinstance(v, str) and exact.fullmatch(v) else v for k, v in data.items()}


def batch(view: Keyed, everything: Fed, until: datetime) -> list[dict[str, Any]]:
    """What the batch layer makes of it: all changes, then all events."""
    rows = []
    for key in sorted({key for key, _ in everything}):
        mine = [event for k, event in everything if k == key]
        _, out = advance(view, None, [*in_log_order(mine), *sorted(e for e in mine if not e.is_change)], until)
        rows += final(view, out)
    return rows


def live(view: Keyed, everything: Fed, until: datetime, dice: Random) -> list[dict[str, Any]]:
    """What the live layer could make of it: changes at any moment, each row's in their order; events as time passes."""
    rows = []
    for key in sorted({key for key, _ in everything}):
        mine = [event for k, event in everything if k == key]
        events = sorted(e for e in mine if not e.is_change)
        queues: dict[tuple[str, str], list[Event]] = {}
        for event in in_log_order(mine):
            queues.setdefault((event.stream, event.id), []).append(event)
        cuts = sorted(dice.uniform(-1, (until - START).total_seconds()) for _ in range(4))
        state, out = None, []
        for low, high in itertools.pairwise([datetime.min.replace(tzinfo=UTC), *map(at, cuts), until]):
            changes = _some(queues, dice if high < until else None)
            due = [e for e in events if low <= e.time < high]
            parts = [(changes, None), (due, high)]
            # At the end of a micro-batch, what the changes made due.
            for part, to in [*dice.sample(parts, 2), ([], high)]:
                state, new = advance(view, states.loads(states.dumps(state)), part, to)
                out += new
        rows += final(view, out)
    return rows


def _some(queues: dict[tuple[str, str], list[Event]], dice: Random | None) -> list[Event]:
    """Changes off the heads of the queues, of rows in any order; without dice, all that are left."""
    taken = []
    while any(queues.values()) and (dice is None or dice.random() < 0.7):
        queue = (dice or Random(0)).choice([q for q in queues.values() if q])
        taken.append(queue.pop(0))
    return taken


def without_at(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as sorted texts, to be compared whatever their order."""
    return sorted(str(sorted((k, _plainly(v)) for k, v in row.items() if k != "at")) for row in rows)


def _plainly(value: Any) -> Any:
    return format(value.normalize(), "f") if isinstance(value, Decimal) else value
