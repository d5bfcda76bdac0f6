"""Changelog topics: the rows of each captured table in a compacted topic, ``changelog.<table>``, for other consumers.

A record's key is the row's key as JSON, its value the row as silver has it (personal columns are tokens); a record without a
value deletes its key. So the newest record of each key is the table, before and after compaction, and a consumer that begins
today reads no more than that. The rows are those that have passed their gate.

The rows and the position up to which the table was read are in one Kafka transaction, by a fenced producer
(:class:`~lockstep.sinks.kafka_senders.ExactlyOnce`): each row is published once, whatever is killed, and never an older one after
a newer one. While the table only grew since the last time, the rows of the offsets since then are published. Otherwise (a replay,
its undo, new columns, a topic that was made again) all rows are, with deletes for the keys that the table does not have any more.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.control import records
from lockstep.control.records import Record
from lockstep.definition.columns import PROVENANCE
from lockstep.definition.tables import Tables
from lockstep.kafka_clients import admin, create_topics, latest_by_key
from lockstep.ledger.ranges import ends
from lockstep.serving.merged import visible
from lockstep.sinks import kafka_senders
from lockstep.sinks.json_text import json_text
from lockstep.sinks.kafka_senders import BATCHES_TOPIC, ExactlyOnce

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings

# Rows of one transaction: seconds of work on a busy machine, and well below the transaction's timeout.
AT_ONCE = 20_000
# Of a record of PostgreSQL, which saves a look into Kafka where nothing is new.
_RECORDS = "changelog"


@dataclass(frozen=True)
class Change:
    """A record of a changelog topic.

    Args:
        id: where the row came from: ``topic:partition:offset``.
        key: the row's key as JSON.
        value: the row as JSON; None: there is none any more.
    """

    id: str
    key: str
    value: str | None


@dataclass(frozen=True)
class Position:
    """Up to where a table was published.

    Args:
        version: of the Delta table; -1: nothing was.
        offsets: by partition of the table's topic, the next offset.
        columns: of the rows.
    """

    version: int
    offsets: Mapping[int, int]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Position":
        """The position that is recorded with the newest batch."""
        offsets = {int(partition): offset for partition, offset in record.get("offsets", {}).items()}
        return cls(record.get("version", -1), offsets, tuple(record.get("columns", ())))

    @property
    def fields(self) -> dict[str, Any]:
        """What is recorded with a batch."""
        return {"version": self.version, "offsets": dict(self.offsets), "columns": [*self.columns]}

    def is_followed_by(self, other: "Position") -> bool:
        """Whether the rows have the same columns there, and come from the same log."""
        return self.columns == other.columns and all(
            other.offsets.get(partition, 0) >= offset for partition, offset in self.offsets.items()
        )


@dataclass(frozen=True)
class Verified:
    """A changelog topic, held against its table at the version up to which it was published.

    Args:
        version: -1: nothing was published.
        differing: the keys that only one of the two has, or whose rows differ, as JSON.
    """

    topic: str
    version: int
    rows: int
    differing: tuple[str, ...]


def topic_of(contract: "Contract") -> str:
    """The changelog topic of a captured table."""
    return f"changelog.{contract.name}"


def publish_all(settings: "Settings", contracts: "Iterable[Contract]") -> dict[str, int]:
    """Publish the captured tables that have rows which were not published; the number of records by stream.

    Raises:
        DeliveryFailed: Kafka did not take the records; run it again.
        Fenced: another process publishes the table.
    """
    known = {r.key: r.fields.get("version") for r in records.of_each_key(settings, _RECORDS)}
    seen, sent = visible(settings), {}
    for contract in contracts:
        table = Tables.of(contract).current
        if table and lake.exists(settings, table):
            version = seen.get(table, lake.newest_version(settings, table) or 0)
            if version >= 0 and known.get(contract.name) != version:
                sent[contract.name] = publish(settings, contract, table, version)
    return {name: count for name, count in sent.items() if count}


def publish(settings: "Settings", contract: "Contract", table: str, version: int) -> int:
    """Publish what a version of the captured table has, and what was not published yet; how many records there were.

    Raises:
        DeliveryFailed, Fenced: see :func:`publish_all`.
    """
    topic = topic_of(contract)
    compacted = {"num_partitions": contract.partitions, "configs": {"cleanup.policy": "compact"}}
    create_topics(settings, {topic: compacted, **BATCHES_TOPIC})
    sender = ExactlyOnce(settings, topic, topic, 1)
    newest = sender.open()
    before, now = Position.of(newest), _position(settings, contract, table, version)
    batch, sent = int(newest["batch_id"]), 0
    if before.version < now.version:
        grew = before.is_followed_by(now) and ledger.only_grew(settings, table, before.version)
        for rows, is_last in pieces(_messages(settings, contract, table, now, before.offsets if grew else None)):
            batch += 1
            # The position moves with the last piece: after a kill, those before it are published again, as they are then.
            sent += sender.send(rows, batch, **(now if is_last else before).fields)
    _remember(settings, contract.name, {"version": version})
    return sent


def verify(settings: "Settings", contract: "Contract") -> Verified:
    """Rebuild the captured table from its changelog topic alone, and compare it with the table."""
    topic, table = topic_of(contract), str(Tables.of(contract).current)
    sender = ExactlyOnce(settings, topic, topic, 1)
    newest = None
    while newest != (newest := sender.last_record()):
        rebuilt = {key.decode(): value.decode() for key, value in latest_by_key(settings, topic).items()}
    position = Position.of(newest)
    rows = {}
    if position.version >= 0:
        found = _messages(settings, contract, table, position, {})
        rows = {message.key: message.value for message in found if message.value is not None}
    differing = sorted(key for key in rows.keys() | rebuilt.keys() if rows.get(key) != rebuilt.get(key))
    return Verified(topic, position.version, len(rows), tuple(differing))


def forget(settings: "Settings", stream: str) -> None:
    """Remove the changelog topic of a captured table that is about to be removed, and what is known of it."""
    topic = f"changelog.{stream}"
    with closing(admin(settings)) as client:
        if topic in client.list_topics():
            client.delete_topics([topic])
    kafka_senders.forget(settings, topic)
    _remember(settings, stream, {})


def pieces(rows: Iterable[Change]) -> Iterator[tuple[list[Change], bool]]:
    """The rows in pieces, and whether a piece is the last. Without rows there is one piece, which is empty."""
    rows = iter(rows)
    piece = [*islice(rows, AT_ONCE)]
    while following := [*islice(rows, AT_ONCE)]:
        yield piece, False
        piece = following
    yield piece, True


def since(offsets: Mapping[int, int]) -> str:
    """The condition for the rows that come from records at or after these offsets. Pure."""
    after = [f"(_partition = {partition:d} AND _offset >= {offset:d})" for partition, offset in offsets.items()]
    others = ", ".join(f"{partition:d}" for partition in offsets)
    return " OR ".join([*after, f"_partition NOT IN ({others})" if others else "true"])


def _position(settings: "Settings", contract: "Contract", table: str, version: int) -> Position:
    entry = next((e for e in ledger.entries(settings, table) if e.version <= version), None)
    there = lake.types(settings, table, version)
    return Position(version, ends(entry.ranges) if entry else {}, tuple(n for n in contract.columns if n in there))


def _messages(
    settings: "Settings", contract: "Contract", table: str, position: Position, after: Mapping[int, int] | None
) -> Iterator[Change]:
    """The rows of the table as records.

    Args:
        after: the offsets from which on rows are taken. None: all rows are, and deletes for the keys that only the topic has.
    """
    from lockstep.lake.small_commits import batches

    only_there = {key.decode() for key in latest_by_key(settings, topic_of(contract))} if after is None else set()
    columns = [*position.columns, "_deleted", *PROVENANCE]
    for batch in batches(settings, table, since(after or {}), columns, position.version):
        for row in batch.to_pylist():
            key = json_text({name: row[name] for name in contract.unique_id})
            only_there.discard(key)
            value = None if row["_deleted"] else json_text({name: row[name] for name in position.columns})
            yield Change(f"{row['_topic']}:{row['_partition']}:{row['_offset']}", key, value)
    for key in sorted(only_there):
        yield Change(f"{table}@{position.version}", key, None)


def _remember(settings: "Settings", stream: str, fields: Mapping[str, Any]) -> None:
    at = datetime.now(UTC)
    records.put(settings, _RECORDS, [Record(stream, int(at.timestamp() * 1000), fields, at)])
