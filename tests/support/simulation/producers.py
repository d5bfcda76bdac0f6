"""Who writes to the log: producers with clocks of their own, late, in disorder, twice, broken, idle, and in transactions."""

from dataclasses import dataclass, field
from typing import Any

from tests.support.simulation import engine
from tests.support.simulation.kafka import Form, Place, Record, Transaction
from tests.support.simulation.streams import CONTRACTS, VIEWS
from tests.support.simulation.world import START, World

from lockstep.live import quiet_partitions
from lockstep.live.quiet_partitions import Newest, newest_of_others, quiet

USERS = ("ann", "bob", "cem")
HEARTBEAT_AFTER = 2_000
# Milliseconds by which a value misses a limit, or does not.
_NEAR = (-1, 0, 1)


@dataclass
class Producer:
    """One producer.

    Args:
        ahead: of its clock (milliseconds).
        transaction: the open one.
        sent: what it has sent, which it may send again.
    """

    number: int
    ahead: int
    transaction: Transaction | None = None
    sent: list[Record] = field(default_factory=list)


class Producers:
    """All producers, and the heartbeats of the live service."""

    def __init__(self, world: World) -> None:
        self.world, dice = world, world.random
        # In an orderly world clocks agree, and nothing waits before it is sent: no record is behind its partition's watermark.
        self.orderly = dice.random() < 0.3
        clocks = [0, 100, -100] if self.orderly else [0, 300, -700, 4_000, -3_000]
        self.all = [Producer(number, dice.choice(clocks)) for number in range(dice.randint(1, 4))]
        self.idle: set[Place] = {place for place in world.kafka.log if dice.random() < 0.15}
        self._numbers = 0
        self._lsn = 0
        self._own: dict[Place, int] = {}
        self._others = -1

    def produce(self) -> None:
        """One producer sends one record."""
        dice = self.world.random
        producer = dice.choice(self.all)
        stream = dice.choices(("clicks", "buys", "accounts"), (6, 4, 1))[0]
        if stream == "accounts":
            self._change()
        elif producer.sent and dice.random() < 0.08:
            self._again(producer)
        else:
            self._event(producer, stream)

    def _event(self, producer: Producer, stream: str) -> None:
        dice, contract = self.world.random, CONTRACTS[stream]
        user = dice.choice(USERS)
        place = self._place(stream, user)
        if place in self.idle:
            return
        timestamp = self._stamp(producer, place)
        form = Form.BROKEN if dice.random() < 0.04 else Form.DATA
        self._numbers += 1
        value = {
            "event_id": None if dice.random() < 0.02 else f"{stream[0]}{self._numbers:04}",
            "event_time": engine.at(self._event_time(place, timestamp)),
            "user_id": user,
            "amount": dice.randint(1, 99),
        }
        record = self._send(producer, (contract.topic, place[1]), timestamp, form, value)
        if form is Form.DATA and value["event_id"]:
            producer.sent.append(record)

    def _stamp(self, producer: Producer, place: Place) -> int:
        """The record's timestamp: the producer's clock, of now or of when the record began to wait."""
        dice = self.world.random
        timestamp = self.world.now + producer.ahead
        if not self.orderly and dice.random() < 0.3:
            newest = max((r.timestamp for r in self.world.kafka.log[place]), default=timestamp)
            bound = _milliseconds(CONTRACTS[place[0]].max_out_of_orderness)
            timestamp = min(timestamp, newest - dice.choice((1, bound // 2, *(bound + n for n in _NEAR), 2 * bound)))
        if place in self.world.kafka.added:
            # Of a partition that was added, only records from after what is final count in any case.
            timestamp = max(timestamp, self.world.kafka.newest_timestamp(place[0]))
        return max(timestamp, START)

    def _event_time(self, place: Place, timestamp: int) -> int:
        """When the event happened: soon before, about as long before as some view allows, or after its timestamp."""
        dice, contract = self.world.random, CONTRACTS[place[0]]
        case = dice.random()
        if case < 0.5:
            return timestamp - dice.randint(0, 2_500)
        if case < 0.55:
            return timestamp + _milliseconds(contract.max_clock_skew) + dice.choice((-20_000, *_NEAR, 60_000))
        limits = [_milliseconds(view.limit) for view in VIEWS.values() if place[0] in view.streams]
        late_by = dice.choice(limits) * dice.choice((1, 1, 1, 2)) + dice.choice(_NEAR)
        if case < 0.8:
            return timestamp - late_by
        newest = max((r.timestamp for r in self.world.kafka.log[place]), default=timestamp)
        return max(timestamp, newest - _milliseconds(contract.max_out_of_orderness)) - late_by

    def _again(self, producer: Producer) -> None:
        """The same event a second time, within the time that duplicates are known, or just after it."""
        dice = self.world.random
        first = producer.sent.pop(0 if dice.random() < 0.3 else dice.randrange(len(producer.sent)))
        place = (first.topic, first.partition)
        window = _milliseconds(CONTRACTS[first.topic].dedup_window)
        timestamp = max(self.world.now + producer.ahead, first.timestamp)
        if not self.orderly and abs(timestamp - first.timestamp - window) < 2_000:
            timestamp = first.timestamp + window + dice.choice(_NEAR)
        self._send(producer, place, timestamp, Form.DATA, first.value)

    def _change(self) -> None:
        # A table has one connector.
        dice, connector = self.world.random, self.all[0]
        self._lsn += 1
        # A connector that starts again sends its last changes a second time.
        lsn = self._lsn
        if dice.random() < 0.2:
            self._lsn = max(0, self._lsn - 1)
            lsn = max(1, self._lsn - dice.randint(0, 2))
        deleted = lsn % 7 == 0
        value = {
            "account_id": USERS[lsn % len(USERS)],
            "name": f"name {lsn}",
            "_op": "d" if deleted else "u",
            "_lsn": lsn,
            "_commit_lsn": lsn,
            "_committed_at": engine.at(self.world.now),
            "_deleted": deleted,
            "_before": None,
        }
        self._send(connector, ("accounts", 0), self.world.now, Form.DATA, value)

    def _place(self, stream: str, user: str) -> Place:
        partitions = self.world.kafka.partitions(stream)
        return stream, partitions[USERS.index(user) % len(partitions)]

    def _send(self, producer: Producer, place: Place, timestamp: int, form: Form, value: Any) -> Record:
        return self.world.kafka.append(place, timestamp, form, value, producer.transaction)

    def transact(self) -> None:
        """A producer begins or ends a transaction."""
        producer = self.world.random.choice(self.all)
        if producer.transaction is None:
            producer.transaction = Transaction()
            self.world.say(f"producer {producer.number} begins a transaction")
        else:
            self.end_transaction(producer, self.world.random.random() < 0.6)

    def end_transaction(self, producer: Producer, commit: bool) -> None:
        """End the producer's transaction, if it has one."""
        if producer.transaction is not None:
            outcome = "commits" if commit else "aborts"
            self.world.met[f"a producer {outcome}"] += 1
            self.world.say(f"producer {producer.number} {outcome} its transaction")
            if not commit:
                # The connector goes on from its last committed change.
                lost = [r.value["_lsn"] for r in producer.transaction.records if r.topic == "accounts"]
                self._lsn = min([self._lsn, *(lsn - 1 for lsn in lost)])
            self.world.kafka.end(producer.transaction, commit, self.world.now + producer.ahead)
            producer.transaction = None
            producer.sent = [record for record in producer.sent if record.visible]

    def add_partition(self) -> None:
        """A stream of events gets another partition."""
        stream = self.world.random.choice(("clicks", "buys"))
        if len(self.world.kafka.partitions(stream)) < 3:
            newest = max(START, self.world.kafka.newest_timestamp(stream))
            place = self.world.kafka.add_partition(stream)
            # Live waits for a partition that was added from its first record on, and batch from the time it sees it. Where the
            # first records wait long for their transaction, the layers would differ: the live service sends this one at once.
            self.world.kafka.append(place, newest, Form.HEARTBEAT)
            self.world.met["a partition is added"] += 1
            self.world.say(f"{stream} gets a partition")

    def heartbeats(self) -> None:
        """The live service looks for quiet partitions."""
        log = {place: of for place, of in self.world.kafka.log.items() if CONTRACTS[place[0]].kind == "events"}
        newest = {place: _newest(of) for place, of in log.items()}
        self._others = newest_of_others(newest, self._own, self._others)
        for place in quiet(newest, self._others, self.world.now, HEARTBEAT_AFTER):
            behind = quiet_partitions._BEHIND
            self._own[place] = self.world.kafka.append(place, self.world.now - behind, Form.HEARTBEAT).offset

    def close(self, timestamp: int) -> None:
        """All transactions end, and each partition says that its time goes on to a timestamp."""
        for producer in self.all:
            self.end_transaction(producer, commit=True)
        for place in self.world.kafka.log:
            if CONTRACTS[place[0]].kind == "events":
                self.world.kafka.append(place, timestamp, Form.HEARTBEAT)


def _newest(log: list[Record]) -> Newest:
    record = max((r for r in log if r.form is not Form.CONTROL), key=lambda r: (r.timestamp, -r.offset), default=None)
    return Newest(record.timestamp, record.offset) if record else Newest(-1, -1)


def _milliseconds(length: Any) -> int:
    return round(length.total_seconds() * 1000)
