"""The log way: one member of a consumer group. Run as ``python -m shop.readers.group GROUP TOPIC NAME COMMIT_EVERY``.

It handles records in order and commits *after* it has handled them, so a member that dies costs no record: whoever takes over
goes on from the last committed offset, and handles again what was handled and not committed.
"""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep import settings
from lockstep.kafka_clients import consumer
from shop.readers.children import die_with_parent

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The broker's smallest: after so long without a heartbeat a member counts as dead, and its partitions are given to others.
SESSION_SECONDS = 6
# How soon a member sees that a topic has come or has grown; until then it may stand idle, for 5 minutes by default.
METADATA_SECONDS = 2


class Member(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """A member of a group.

    Args:
        handle: what is done with a record.
        told: is given what happens to the member: its partitions (``assigned``), and their offsets (``committed``).
        commit_every: records from one commit to the next.
    """

    def __init__(
        self,
        config: "Settings",
        group: str,
        topic: str,
        handle: Callable[[Any], None],
        told: Callable[[str, dict[int, int | None]], None],
        commit_every: int,
    ) -> None:
        self.topic, self.handle, self.told, self.commit_every = topic, handle, told, commit_every
        self._handled: dict[TopicPartition, OffsetAndMetadata] = {}
        self._since = 0
        self.reader: KafkaConsumer = consumer(
            config,
            group_id=group,
            auto_offset_reset="earliest",
            metadata_max_age_ms=METADATA_SECONDS * 1000,
            session_timeout_ms=SESSION_SECONDS * 1000,
            heartbeat_interval_ms=SESSION_SECONDS * 1000 // 4,
        )

    def run(self) -> None:
        """Read for as long as the process lives."""
        self.reader.subscribe([self.topic], listener=self)
        # Known only after it is subscribed to: a leader that joins before gives out none of it, or gives out all a second time.
        known = Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.1), retry=retry_if_not_result(bool))
        known(self.reader.partitions_for_topic, self.topic)
        # Not `poll` with a timeout: one that ends between a leader's assignment and the broker's word on it leaves the member
        # joined and without its partitions, until the broker puts it out (kafka-python 3.0.12).
        for record in self.reader:
            self.handle(record)
            # The offset of the next record to read, which is what a commit means.
            self._handled[TopicPartition(record.topic, record.partition)] = OffsetAndMetadata(record.offset + 1, "", -1)
            self._since += 1
            if self._since >= self.commit_every:
                self.reader.commit(self._handled)
                self._committed()

    async def on_partitions_revoked(self, _revoked: Any) -> None:
        """Commit before the partitions go to others: a live member that gives way costs no repetition."""
        if self._handled:
            await self.reader.commit_async(self._handled)
            self._committed()

    async def on_partitions_lost(self, _lost: Any) -> None:
        """They are another's by now, who has begun at the last commit."""
        self._handled, self._since = {}, 0

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.told("assigned", {tp.partition: None for tp in assigned})

    def _committed(self) -> None:
        self.told("committed", {tp.partition: at.offset for tp, at in self._handled.items()})
        self._handled, self._since = {}, 0


def main(group: str, topic: str, name: str, commit_every: str) -> None:
    """Tell on standard output what was handled, one JSON object a line."""

    def say(**fields: Any) -> None:
        print(json.dumps({"member": name} | fields), flush=True)

    def handle(record: Any) -> None:
        say(event="handled", partition=record.partition, offset=record.offset, value=json.loads(record.value))

    def told(event: str, offsets: dict[int, int | None]) -> None:
        say(event=event, offsets=offsets)

    die_with_parent()
    Member(settings.load(), group, topic, handle, told, int(commit_every)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
