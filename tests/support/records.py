"""Makes records as the broker has them: events, and changes of tables as Debezium writes them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.shop.oracles.record import Record

START = datetime(2026, 11, 10, 10, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """The instant this many seconds after the start."""
    return START + timedelta(seconds=seconds)


def event_record(stream: str, number: int, seconds: float, arrives_after: float = 0.5, **payload: Any) -> Record:
    """An event that happened ``seconds`` after the start; ``number`` is its offset and makes its id."""
    value = {"event_id": f"e{number}", "event_time": at(seconds).isoformat()} | payload
    return Record(stream, 0, number, at(seconds + arrives_after), value)


def change_record(
    stream: str, lsn: int, seconds: float, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> Record:
    """A change that was committed ``seconds`` after the start."""
    op = "d" if after is None else "c" if before is None else "u"
    source = {"lsn": lsn, "ts_ms": round(at(seconds).timestamp() * 1000), "sequence": f'["{lsn}","{lsn}"]'}
    value = {"before": before, "after": after, "op": op, "source": source}
    return Record(stream, 0, lsn, at(seconds), value)


def table_records(stream: str, identity: tuple[str, ...], rows: Iterable[Mapping[str, Any]]) -> list[Record]:
    """The changes that write these rows one after the other. Every third change of a row that exists deletes it instead."""
    current: dict[Any, Mapping[str, Any] | None] = {}
    records = []
    for lsn, row in enumerate(rows, 1):
        key = tuple(row[name] for name in identity)
        before = current.get(key)
        after = None if before is not None and lsn % 3 == 0 else row
        current[key] = after
        records.append(change_record(stream, lsn, lsn * 7, before, after))
    return records
