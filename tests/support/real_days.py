"""History in a hurry on the real tables of the shop: what real steps go on from.

The records are in the topic, and the tables are those that the first real steps have made. From then on the commits of each day
are made of the same records without Spark, as the steps would have made them: a real replay of them changes nothing.
"""

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from tests.support.days import PARTITIONS, ROWS, VALUE_BYTES, Days

from lockstep import lake, ledger
from lockstep.batch import going_on
from lockstep.batch.plan import Plan, plan
from lockstep.batch.rollup import roll_up, written_as
from lockstep.catalog import connect
from lockstep.definition import Keyed, View
from lockstep.definition.states import micros
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import Interval
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config
from lockstep.ledger.ranges import Range
from lockstep.quality.gate import run_gates
from lockstep.refine.silver import refine

MINUTE = timedelta(minutes=1)
# One event of the stream, with the partition and the offset of its record.
Sent = dict[str, Any]


@dataclass
class RealDays(Days):
    """Days of page views, of a view of their minutes, and of a view with machines that go on from commit to commit.

    Args:
        keyed: the view with machines; it reads ``event_id``, ``user_id`` and ``page`` of each page view by its user.
    """

    keyed: Keyed = None  # type: ignore[assignment]
    _session: ExitStack = field(default_factory=ExitStack)
    # The events that no machine has processed yet.
    _waiting: list[Sent] = field(default_factory=list)
    _ends: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        tables = Tables.of(self.contract)
        self.bronze, self.silver, self.gold = tables.bronze, tables.log, gold_of(self.view)
        self._producer = Producer(confluent_config(self.settings) | {"acks": "all", "log_level": 0})
        self.connect()
        self.send(self.start - timedelta(hours=1))
        self.take()

    def connect(self) -> None:
        """Open a session on the server."""
        self.spark = self._session.enter_context(connect(self.settings, "soak"))

    def disconnect(self) -> None:
        """Close the session."""
        self._session.close()

    @property
    def tables(self) -> list[str]:
        return lake.tables(self.settings)

    def look_after(self) -> None:
        """Run the gates, and the housekeeping: it keeps what readers are held at, from the last gate on."""
        run_gates(self.spark, self.settings, [self.silver, *map(gold_of, (self.view, self.keyed))], f"day-{self.day}")
        super().look_after()

    def take(self) -> None:
        """Run the real steps."""
        run = f"day-{self.day}"
        ingest(self.spark, self.settings, self.contract, run)
        refine(self.spark, self.settings, self.contract, run)
        for view in (self.view, self.keyed):
            roll_up(self.spark, self.settings, view, run)

    def send(self, at: datetime) -> list[Sent]:
        """Send the records of half a minute; the events."""
        sent = []
        for n in range(ROWS):
            partition, happened = n % PARTITIONS, at + timedelta(seconds=n)
            offset = self._ends[partition]
            event = {
                "event_id": f"e{partition}-{offset}",
                "event_time": happened.isoformat(),
                "user_id": f"u{self._dice.randrange(ROWS)}",
                "page": f"/product/{self._dice.randrange(ROWS)}",
                "referrer": self._dice.randbytes(VALUE_BYTES // 2).hex(),
            }
            value, key = json.dumps(event).encode(), event["user_id"].encode()
            stamp = round(happened.timestamp() * 1000)
            self._producer.produce(self.contract.topic, value, key, partition, timestamp=stamp)
            of_record = {
                "_topic": self.contract.topic,
                "_partition": partition,
                "_offset": offset,
                "_arrival": happened,
            }
            sent.append(event | of_record | {"event_time": happened, "key": key, "value": value})
            self._ends[partition] += 1
        assert self._producer.flush(30) == 0
        self._waiting += sent
        return sent

    def write(self, at: datetime) -> None:
        """One commit of each table, with the records of half a minute."""
        sent = self.send(at)
        newest = ledger.latest(self.settings, self.bronze)
        assert newest is not None
        ranges = [Range(r.topic, r.topic_id, r.partition, r.end, self._ends[r.partition]) for r in newest.ranges]
        bronze = [
            {name.removeprefix("_"): value for name, value in one.items()}
            | {"timestamp": one["_arrival"], "timestamp_type": 0}
            for one in sent
        ]
        self._commit(self.bronze, "ingest", self._rows(self.bronze, bronze), newest, ranges, epochs=newest.epochs)
        before, source = ledger.latest(self.settings, self.silver), ledger.latest(self.settings, self.bronze)
        taken = ledger.pending(self.settings, source, before, 1 << 62)
        silver = [one | {"_watermark": one["_arrival"] - self.contract.max_out_of_orderness} for one in sent]
        counts = {"silver": ROWS, "duplicates": 0, "quarantined": 0, "markers": 0}
        stamps = {one["_partition"]: round(one["_arrival"].timestamp() * 1000) for one in sent}
        rows = self._rows(self.silver, silver)
        self._commit(self.silver, "refine", rows, before, taken, counts=counts, newest=stamps)
        self._count(sent, at.replace(second=0))
        self._go_on()

    def _count(self, sent: list[Sent], minute: datetime) -> None:
        span = (minute, minute + MINUTE)
        _, record = self._planned(self.view, span)
        pages = Counter(one["page"] for one in sent)
        start = {"window_start": minute, "window_end": minute + MINUTE}
        rows = self._rows(self.gold, [start | {"page": page, "views": views} for page, views in pages.items()])
        txn = ledger.txn(self.gold, record)
        lake.replace(rows, self.settings, self.gold, self.view.interval(*span), txn, record)

    def _go_on(self) -> None:
        planned, record = self._planned(self.keyed, None)
        final = [one for one in self._waiting if one["event_time"] < planned.until]
        self._waiting = self._waiting[len(final) :]
        events = [
            {
                "_key": one["user_id"],
                "_time": micros(one["event_time"]),
                "_id": one["event_id"],
                "_stream": self.contract.name,
                "_position": None,
                "_data": json.dumps({name: one[name] for name in ("event_id", "user_id", "page")}),
            }
            for one in final
            if one["event_time"] >= planned.low
        ]
        going_on.roll_up(self.settings, self.keyed, planned, {}, lambda: pa.Table.from_pylist(events), record)

    def _planned(self, view: View, span: Interval | None) -> tuple[Plan, dict[str, Any]]:
        """What the roll-up of a view takes, and its record."""
        newest = ledger.latest(self.settings, gold_of(view))
        planned = plan(self.settings, view, newest)
        assert planned is not None
        record = ledger.record(
            "rollup",
            newest,
            f"day-{self.day}",
            [r for intake in planned.intakes for r in intake.ranges],
            counts={"counted": ROWS, "ignored": 0, "side_output": 0},
            sources={intake.source.table: intake.source.version for intake in planned.intakes},
            until=planned.until.isoformat(),
            **written_as(view, span or (planned.low, planned.until)),
        )
        return planned, record

    def _rows(self, table: str, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=lake.schema(self.settings, table))
