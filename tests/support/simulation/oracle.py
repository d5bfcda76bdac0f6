"""What must come out, said once more in a few lines of Python, from the log alone. It shares no code with the platform.

The rule is that of docs/decisions/late-by-the-log.md: a record arrives at its timestamp, for keyed views not before its
partition's watermark; its event counts if it arrives at most ``limit`` after it happened.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.simulation.kafka import Form, Kafka, Record

Expected = dict[Any, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BOUND = {"clicks": 2_000, "buys": 500}
_DEDUP = {"clicks": 60_000, "buys": 60_000, "accounts": 24 * 3_600_000}
_SKEW = 30_000
SILVER, DUPLICATE, QUARANTINED, MARKER = "silver", "duplicates", "quarantined", "markers"


@dataclass(frozen=True)
class Judged:
    """A record that a reader gets, and what becomes of it. All times are milliseconds."""

    place: tuple[str, int]
    offset: int
    outcome: str
    timestamp: int
    watermark: int
    event_time: int
    value: Any


def judged(kafka: Kafka) -> list[Judged]:
    """Every committed record of the streams of events."""
    found = []
    for (topic, partition), log in sorted(kafka.log.items()):
        newest, kept_at = 0, dict[Any, int]()
        for record in log:
            if not record.visible:
                continue
            newest = max(newest, record.timestamp)
            value, event_time = record.value, 0
            if record.form is Form.DATA and topic != "accounts":
                event_time = _milliseconds(value["event_time"])
            if record.form is Form.HEARTBEAT:
                outcome = MARKER
            elif record.form is Form.BROKEN or event_time - record.timestamp > _SKEW or _identity(record) is None:
                outcome = QUARANTINED
            else:
                kept = kept_at.get(_identity(record))
                outcome = SILVER if kept is None or record.timestamp - kept > _DEDUP[topic] else DUPLICATE
                if outcome == SILVER:
                    kept_at[_identity(record)] = record.timestamp
            watermark = newest - _BOUND.get(topic, 0)
            found.append(
                Judged((topic, partition), record.offset, outcome, record.timestamp, watermark, event_time, value)
            )
    return found


def _identity(record: Record) -> Any:
    return record.value["_lsn"] if record.topic == "accounts" else record.value["event_id"]


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _at(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


def _counts(records: Iterable[Judged], stream: str, limit: int, keyed: bool) -> list[Judged]:
    """The events of a stream that count, in the order of their times."""
    counted = [
        r
        for r in records
        if r.place[0] == stream
        and r.outcome == SILVER
        and (max(r.timestamp, r.watermark) if keyed else r.timestamp) - r.event_time <= limit
    ]
    return sorted(counted, key=lambda r: (r.event_time, r.value["event_id"]))


def per_window(records: list[Judged], size: int, slide: int, limit: int) -> Expected:
    """By start and user: clicks, and the sum of their amounts."""
    found: Expected = defaultdict(lambda: (0, 0))
    for r in _counts(records, "clicks", limit, keyed=False):
        for start in range((r.event_time - size) // slide * slide, r.event_time + 1, slide):
            if start <= r.event_time < start + size:
                clicks, amount = found[_at(start), r.value["user_id"]]
                found[_at(start), r.value["user_id"]] = clicks + 1, amount + r.value["amount"]
    return dict(found)


def sessions(records: list[Judged], gap: int, limit: int) -> Expected:
    """By user and start: clicks, and the sum of their amounts."""
    found: Expected = {}
    last: dict[str, tuple[int, int]] = {}
    for r in _counts(records, "clicks", limit, keyed=True):
        user = r.value["user_id"]
        start, end = last.get(user, (r.event_time, r.event_time))
        start = start if r.event_time - end < gap else r.event_time
        last[user] = start, r.event_time
        clicks, amount = found.get((user, _at(start)), (0, 0))
        found[user, _at(start)] = clicks + 1, amount + r.value["amount"]
    return found


def pairs(records: list[Judged], within: int, limit: int) -> Expected:
    """By click and number: user, and the buy."""
    found: Expected = {}
    buys = _counts(records, "buys", limit, keyed=True)
    for click in _counts(records, "clicks", limit, keyed=True):
        user, name = click.value["user_id"], click.value["event_id"]
        own = [b for b in buys if b.value["user_id"] == user and 0 <= b.event_time - click.event_time <= within]
        found |= {(name, number): (user, buy.value["event_id"]) for number, buy in enumerate(own, 1)}
        found |= {} if own else {(name, 0): (user, None)}
    return found


def balances(records: list[Judged], limit: int) -> Expected:
    """By account: its name, its buys, and the sum of their amounts."""
    found: dict[str, list[Any]] = defaultdict(lambda: [None, 0, 0])
    changes = [r for r in records if r.place[0] == "accounts" and r.outcome == SILVER]
    for r in sorted(changes, key=lambda r: r.value["_lsn"]):
        found[r.value["account_id"]][0] = None if r.value["_deleted"] else r.value["name"]
    for r in _counts(records, "buys", limit, keyed=True):
        found[r.value["user_id"]][1] += 1
        found[r.value["user_id"]][2] += r.value["amount"]
    return {account: tuple(values) for account, values in found.items()}


def expected(records: list[Judged]) -> dict[str, Expected]:
    """By view, its rows."""
    return {
        "per_window": per_window(records, 10_000, 10_000, 5_000),
        "hopping": per_window(records, 12_000, 5_000, 9_000),
        "sessions": sessions(records, 8_000, 5_000),
        "pairs": pairs(records, 6_000, 4_000),
        "balances": balances(records, 3_000),
    }
