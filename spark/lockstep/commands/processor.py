"""The processor of one partition: it decides commands, and writes what they become.

Kafka has no conditional append, so nothing keeps two writers from deciding on the same state. Therefore a partition has one
processor: its transactional id is that of the partition, and a newer processor fences the older one. One transaction has the
events, the outcomes, perhaps a snapshot, and the position in the commands. All of it is read, or nothing.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from datetime import datetime
from itertools import zip_longest
from threading import Event
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from lockstep.commands.aggregate import Aggregate
from lockstep.commands.decisions import Partition
from lockstep.commands.errors import CommandsFailed, Fenced
from lockstep.commands.records import COMMAND_OFFSET, Record, Recorded, event_value, snapshot_records
from lockstep.commands.restore import restore
from lockstep.commands.topics import admin, ensure, milliseconds, newest_time, reader, record_of
from lockstep.failpoints import failpoint
from lockstep.kafka_clients import confluent_config, is_fenced, produce

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.commands")

# How long Kafka may take to confirm a transaction. After that a new processor begins where the log says.
_TIMEOUT_SECONDS = 30.0
# Of one transaction: more would let the first of them wait longer for its answer.
_COMMANDS = 500


class Processor:
    """Decides the commands of one partition. It belongs to one thread, and is thrown away when it raises.

    Args:
        number: the partition.

    Raises:
        CommandsFailed: Kafka begins no transaction.
    """

    def __init__(self, settings: "Settings", aggregate: Aggregate[Any, Any, Any], number: int) -> None:
        self.settings, self.aggregate, self.number = settings, aggregate, number
        self._commands = aggregate.topic("commands")
        self._group = f"lockstep.{self._commands}"
        self._producer, self._admin = self._open(), admin(settings)
        # Whatever an older processor began is over by now, so the log is final.
        self._partition: Partition[Any, Any, Any] = restore(settings, aggregate, number)
        self._consumer = reader(settings, self._commands, number, self._partition.position, **{"group.id": self._group})

    def run_once(self, seconds: float = 1.0) -> int:
        """Wait for commands, decide those that are there in one transaction, and return how many there were.

        Raises:
            Fenced: a newer processor decides for this partition.
            CommandsFailed: Kafka did not confirm the transaction.
        """
        records = self._next(seconds)
        if not records:
            return 0
        failpoint("command-before")
        try:
            self._producer.begin_transaction()
            self._write(records)
            failpoint("command-open")
            self._producer.commit_transaction(_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise self._describe(error) from error
        failpoint("command-committed")
        return len(records)

    def close(self) -> None:
        """Leave the log as it is: what is not committed is aborted."""
        with suppress(KafkaException):
            self._producer.abort_transaction(_TIMEOUT_SECONDS)
        self._consumer.close()

    def _open(self) -> Producer:
        own = {
            "transactional.id": f"{self._group}.{self.number}",
            "transaction.timeout.ms": int(_TIMEOUT_SECONDS * 1000),
            "log_level": 0,
        }
        producer = Producer(confluent_config(self.settings) | own)
        try:
            producer.init_transactions(_TIMEOUT_SECONDS)
        except KafkaException as error:
            raise self._describe(error) from error
        return producer

    def _next(self, seconds: float) -> list[Record]:
        first = self._consumer.poll(seconds)
        found = [first, *self._consumer.consume(_COMMANDS - 1, timeout=0)] if first else []
        for message in found:
            error = message.error()
            if error is not None:
                raise CommandsFailed(
                    f"{self._commands}-{self.number} cannot be read from offset {self._partition.position} on: {error.str()}. "
                    "Where the topic was made again, its old outcomes stand for other commands: give the aggregate another name."
                )
        return [record_of(message) for message in found]

    def _write(self, records: list[Record]) -> None:
        partition = self._partition
        # Where the topic is a stream too, it has heartbeats. A command that has waited is older than those, and views would leave
        # out its events as late.
        partition.pass_to(newest_time(self._admin, self.aggregate.topic("events"), self.number))
        partition.forget()
        decisions = [self._decide(record) for record in records]
        new = [recorded for _, events in decisions for recorded in events]
        offsets = self._append("events", [(r.key.encode(), event_value(r), r.at) for r in new])
        for recorded, offset in zip(new, offsets, strict=True):
            outcome = partition.outcomes[recorded.command_id]
            partition.outcomes[recorded.command_id] = outcome.model_copy(update={"after": offset + 1})
        answers = [(partition.outcomes[id], record) for record, (id, _) in zip(records, decisions, strict=True)]
        self._append(
            "outcomes",
            [(o.command_id.encode(), o.model_dump_json().encode(), record.at) for o, record in answers],
            [{COMMAND_OFFSET: str(record.offset)} for _, record in answers],
        )
        if new and partition.unsaved >= self.aggregate.snapshot_every:
            saved = snapshot_records(self.aggregate, partition.entities, partition.changed, offsets[-1] + 1)
            self._append("snapshots", [(key, value, records[-1].at) for key, value in saved])
            partition.saved()
        # For tools that show the lag of groups.
        position = TopicPartition(self._commands, self.number, partition.position)
        self._producer.send_offsets_to_transaction(
            [position], self._consumer.consumer_group_metadata(), _TIMEOUT_SECONDS
        )

    def _decide(self, record: Record) -> tuple[str, list[Recorded[Any]]]:
        try:
            return self._partition.decide(record)
        except Exception as error:  # the code of others, which may raise anything
            raise CommandsFailed(
                f"The command at {record.place} cannot be decided: {self.aggregate.name} raises "
                f"{type(error).__name__}: {error}. It waits there, and those behind it: correct `decide` or `evolve`, run again."
            ) from error

    def _append(
        self,
        part: str,
        records: Sequence[tuple[bytes, bytes, datetime]],
        headers: Iterable[dict[str, str | bytes | None]] = (),
    ) -> list[int]:
        """Write records to the partition of one of the topics, and return their offsets."""
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets.append(message.offset() or 0)

        topic = self.aggregate.topic(part)
        for (key, value, at), own in zip_longest(records, headers):
            produce(
                self._producer,
                topic,
                value=value,
                key=key,
                partition=self.number,
                on_delivery=delivered,
                timestamp=milliseconds(at),
                headers=own or {},
            )
        try:
            left = self._producer.flush(_TIMEOUT_SECONDS)
        except SystemError as error:
            # The client raises a fatal error, and then calls `delivered`: Python makes another error of that.
            raise error.__cause__ or error from None
        if errors or left:
            raise KafkaException(
                errors[0] if errors else KafkaError(KafkaError._TIMED_OUT, f"{left} records were not taken")
            )
        return sorted(offsets)

    def _describe(self, error: KafkaException) -> CommandsFailed:
        place = f"{self._commands}-{self.number}"
        if is_fenced(error):
            return Fenced(
                f"{place}: a newer processor decides for it, and nothing that this one wrote since is read. Stop one."
            )
        return CommandsFailed(
            f"{place}: Kafka did not confirm the transaction ({error.args[0].str()}). Run again: a new processor begins where "
            "the log says, and decides nothing twice."
        )


def run(settings: "Settings", partitions: Mapping[Aggregate[Any, Any, Any], Iterable[int]], stop: Event) -> None:
    """Run the processors of these partitions, a thread each, until one of them fails or ``stop`` is set.

    Args:
        partitions: of each aggregate.

    Raises:
        CommandsFailed: what the first of them failed with. The others have stopped then.
    """
    for aggregate in partitions:
        ensure(settings, aggregate)

    def work(aggregate: Aggregate[Any, Any, Any], number: int) -> None:
        try:
            with closing(Processor(settings, aggregate, number)) as processor:
                log.info("%s-%d: decides commands", aggregate.topic("commands"), number)
                while not stop.is_set():
                    processor.run_once()
        finally:
            stop.set()

    places = [(aggregate, number) for aggregate, numbers in partitions.items() for number in numbers]
    with ThreadPoolExecutor(len(places)) as pool:
        for done in as_completed([pool.submit(work, *place) for place in places]):
            done.result()
