"""Publish captured tables in their changelog topics (:mod:`.changelog`), after their rows have passed their gate.

The rows and the position up to which the table was read are in one Kafka transaction, by a fenced producer
(:class:`~lockstep.sinks.kafka_senders.ExactlyOnce`): each row is published once, whatever is killed, and never an older one after
a newer one. While the table only grew since the last time, the rows of the offsets since then are published. Otherwise (a replay,
its undo, new columns, a topic that was made again) all rows are, with deletes for the keys that the table does not have any more.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from deltalake.exceptions import DeltaError

from lockstep import lake, ledger
from lockstep.control import records
from lockstep.control.records import Record
from lockstep.definition.tables import Tables
from lockstep.errors import Failures, LedgerBroken
from lockstep.kafka_clients import admin, create_topics
from lockstep.serving.changelog import Position, changes, position, topic_of
from lockstep.serving.merged import visible
from lockstep.sinks import kafka_senders
from lockstep.sinks.kafka_senders import BATCHES_TOPIC, ExactlyOnce

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings

Item = TypeVar("Item")
# Rows of one transaction: seconds of work on a busy machine, and well below the transaction's timeout.
AT_ONCE = 20_000
# Of a record of PostgreSQL, which saves a look into Kafka where nothing is new.
_RECORDS = "changelog"


def publish_all(settings: "Settings", contracts: "Iterable[Contract]") -> dict[str, int]:
    """Publish the captured tables that have rows which were not published; the number of records by stream.

    Raises:
        SomeFailed: some tables could not be read, such as those whose logs are torn. All others are published.
        DeliveryFailed: Kafka did not take the records; run it again.
        Fenced: another process publishes the table.
    """
    known = {r.key: r.fields.get("version") for r in records.of_each_key(settings, _RECORDS)}
    seen, sent = visible(settings), dict[str, int]()
    unread = Failures()
    for contract in contracts:
        table = Tables.of(contract).current
        if table and lake.exists(settings, table):
            version = seen.get(table, lake.newest_version(settings, table) or 0)
            if version >= 0 and known.get(contract.name) != version:
                with unread.of(table, LedgerBroken, DeltaError):
                    sent[contract.name] = publish(settings, contract, table, version)
    unread.check("The changelogs of captured tables")
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
    before, now = Position.of(newest), position(settings, contract, table, version)
    batch, sent = int(newest["batch_id"]), 0
    if before.version < now.version:
        grew = before.is_followed_by(now) and ledger.only_grew(settings, table, before.version)
        for rows, is_last in pieces(changes(settings, contract, table, now, before.offsets if grew else None)):
            batch += 1
            # The position moves with the last piece: after a kill, those before it are published again, as they are then.
            sent += sender.send(rows, batch, **(now if is_last else before).fields)
    _remember(settings, contract.name, {"version": version})
    return sent


def forget(settings: "Settings", stream: str) -> None:
    """Remove the changelog topic of a captured table that is about to be removed, and what is known of it."""
    topic = f"changelog.{stream}"
    with closing(admin(settings)) as client:
        if topic in client.list_topics():
            client.delete_topics([topic])
    kafka_senders.forget(settings, topic)
    _remember(settings, stream, {})


def pieces(rows: Iterable[Item]) -> Iterator[tuple[list[Item], bool]]:
    """The rows in pieces, and whether a piece is the last. Without rows there is one piece, which is empty."""
    rows = iter(rows)
    piece = [*islice(rows, AT_ONCE)]
    while following := [*islice(rows, AT_ONCE)]:
        yield piece, False
        piece = following
    yield piece, True


def _remember(settings: "Settings", stream: str, fields: Mapping[str, Any]) -> None:
    at = datetime.now(UTC)
    records.put(settings, _RECORDS, [Record(stream, int(at.timestamp() * 1000), fields, at)])
