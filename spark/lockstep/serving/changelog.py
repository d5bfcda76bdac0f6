"""Changelog topics: the rows of each captured table in a compacted topic, ``changelog.<table>``, for other consumers.

A record's key is the row's key as JSON, its value the row as silver has it (personal columns are tokens); a record without a
value deletes its key. So the newest record of each key is the table, before and after compaction, and a consumer that begins
today reads no more than that. :mod:`.publish_changelog` writes them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.definition.columns import PROVENANCE
from lockstep.definition.tables import Tables
from lockstep.kafka_clients import latest_by_key
from lockstep.ledger.ranges import ends
from lockstep.sinks.json_text import json_text
from lockstep.sinks.kafka_senders import ExactlyOnce

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings


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


def topic_of(contract: "Contract") -> str:
    """The changelog topic of a captured table."""
    return f"changelog.{contract.name}"


def since(offsets: Mapping[int, int]) -> str:
    """The condition for the rows that come from records at or after these offsets. Pure."""
    after = [f"(_partition = {partition:d} AND _offset >= {offset:d})" for partition, offset in offsets.items()]
    others = ", ".join(f"{partition:d}" for partition in offsets)
    return " OR ".join([*after, f"_partition NOT IN ({others})" if others else "true"])


def position(settings: "Settings", contract: "Contract", table: str, version: int) -> Position:
    """The position that a version of the captured table stands for."""
    entry = next((e for e in ledger.entries(settings, table) if e.version <= version), None)
    there = lake.types(settings, table, version)
    return Position(version, ends(entry.ranges) if entry else {}, tuple(n for n in contract.columns if n in there))


def changes(
    settings: "Settings", contract: "Contract", table: str, position: Position, after: Mapping[int, int] | None
) -> Iterator[Change]:
    """The rows of the table at a position, as records.

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
        found = changes(settings, contract, table, position, {})
        rows = {message.key: message.value for message in found if message.value is not None}
    differing = sorted(key for key in rows.keys() | rebuilt.keys() if rows.get(key) != rebuilt.get(key))
    return Verified(topic, position.version, len(rows), tuple(differing))
