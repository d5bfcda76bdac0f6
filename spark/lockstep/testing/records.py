"""Made-up records of a view's streams, with what a log has: duplicates, late records, broken ones and some from the future."""

import json
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
# Enough for every key to have several rows in each of ten minutes; a view over them is computed in a second or two.
COUNT = 300
SPAN = timedelta(minutes=10)
# Different values of a column: few, so that events share keys.
VARIETY = 3
# The same records in every run, so that a failure can be repeated.
SEED = 7
_BROKEN = b"{broken"
Choices = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Sent:
    """One record of a topic.

    Args:
        arrival: its Kafka timestamp (UTC).
        value: the fields that it holds (for changes Debezium's envelope), or None for one that cannot be read.
    """

    stream: str
    partition: int
    offset: int
    arrival: datetime
    value: dict[str, Any] | None

    @property
    def payload(self) -> bytes:
        """The record's bytes."""
        if self.value is None:
            return _BROKEN
        try:
            return CONTRACTS[self.stream].encoded(self.value)
        except (ValueError, TypeError):
            # Its schema has no null where an id is made null: no producer can send such a record.
            return _BROKEN


def made_up(view: View, choices: Choices | None = None, count: int = COUNT, seed: int = SEED) -> dict[str, list[Sent]]:
    """Records for each of the view's streams, in the order of the log; the same ones for the same seed.

    Args:
        choices: values for columns (by name) of which the view asks for particular ones.
        count: how many events a stream has, before some are sent twice.

    Raises:
        ValueError: a column has a type for which values cannot be made up: give it choices.
    """
    dice = {stream: random.Random(f"{stream}/{seed}") for stream in view.streams}  # noqa: S311 (no secrets)
    return {stream: _log(CONTRACTS[stream], choices or {}, count, dice[stream]) for stream in view.streams}


def _log(contract: Contract, choices: Choices, count: int, dice: random.Random) -> list[Sent]:
    events = _events if contract.kind == "events" else _changes
    ends = dict.fromkeys(range(contract.partitions), 0)
    log = []
    for arrival, key, value in sorted(events(contract, choices, count, dice), key=lambda record: record[0]):
        partition = zlib.crc32(key.encode()) % contract.partitions
        log.append(Sent(contract.name, partition, ends[partition], arrival, value))
        ends[partition] += 1
    return log


Record = tuple[datetime, str, dict[str, Any] | None]


def _events(contract: Contract, choices: Choices, count: int, dice: random.Random) -> Iterator[Record]:
    for number in range(count):
        at = START + SPAN * dice.random()
        value = _row(contract, choices, number, dice) | {contract.event_time: at.isoformat()}
        key = str([value[name] for name in contract.key])
        # Most records arrive soon, some after the lateness that views usually allow.
        arrival = at + timedelta(seconds=dice.choice((0.2, 1, 3, 3, 4, 30)))
        case = dice.randrange(30)
        if case == 0:
            yield arrival, key, None
        elif case == 1:
            yield arrival, key, value | {dice.choice(contract.unique_id): None}
        elif case == 2:
            yield at - contract.max_clock_skew - timedelta(minutes=1), key, value
        else:
            yield arrival, key, value
        if case in (3, 4, 5):
            yield arrival + timedelta(seconds=dice.choice((0.5, 20))), key, value


def _changes(contract: Contract, choices: Choices, count: int, dice: random.Random) -> Iterator[Record]:
    rows: dict[int, dict[str, Any]] = {}
    for number in range(count // 10):
        at = START + SPAN * number * 10 / count
        identity = dice.randrange(VARIETY * 2)
        before, after = rows.get(identity), _row(contract, choices, identity, dice)
        if contract.event_time:
            after[contract.event_time] = at.isoformat()
        rows[identity] = after
        source = {"lsn": number + 1, "ts_ms": int(at.timestamp() * 1000), "sequence": json.dumps([str(number + 1)] * 2)}
        envelope = {"before": before, "after": after, "op": "u" if before else "c", "source": source}
        yield at + timedelta(seconds=1), str([after[name] for name in contract.key]), envelope


def _row(contract: Contract, choices: Choices, identity: int, dice: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, kind in contract.columns.items():
        if name in contract.unique_id:
            row[name] = f"{name}-{identity}" if kind == "STRING" else identity
        elif name not in contract.required and dice.randrange(10) == 0:
            row[name] = None
        else:
            row[name] = dice.choice(choices[name]) if name in choices else _value(name, kind, dice)
    return row


def _value(name: str, kind: str, dice: random.Random) -> Any:
    number = dice.randrange(VARIETY)
    if kind.startswith("DECIMAL("):
        precision, scale = map(int, kind.removeprefix("DECIMAL(").removesuffix(")").split(","))
        return str(Decimal(dice.randrange(10 ** min(precision, scale + 2))).scaleb(-scale))
    simple = {
        "STRING": f"{name}-{number}",
        "BOOLEAN": number == 0,
        "INT": number,
        "BIGINT": number,
        # A quarter is exact in binary, so that a sum does not depend on its order.
        "DOUBLE": number / 4,
        "DATE": (START + timedelta(days=number)).date().isoformat(),
        "TIMESTAMP": (START + timedelta(minutes=number)).isoformat(),
    }
    if kind not in simple:
        raise ValueError(f"no values can be made up for the column {name} of type {kind}: give some in `choices`")
    return simple[kind]
