"""A member of a consumer group. Run as ``python -m shop.readers.group GROUP TOPIC NAME COMMIT_EVERY``.

It handles records in order, and commits *after* it has handled them. So no record is lost when a member dies: another member
goes on from the last committed offset, and handles the records after it again.
"""

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka import AsyncConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep import settings
from lockstep.kafka_clients import consumer
from lockstep.processes import end_with_parent

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The smallest value that the broker allows. A member without a heartbeat for so long counts as dead, and loses its partitions.
SESSION_SECONDS = 6
# How soon a member sees a new topic or partition. The default is 5 minutes, in which the member would be idle.
METADATA_SECONDS = 2


class Member(AsyncConsumerRebalanceListener):  # type: ignore[misc]
    """A member of a group.

    Args:
        handle: is called with each record.
        report: is called with what happens to the member: its partitions (``assigned``), and their offsets (``committed``).
        commit_every: records from one commit to the next.
    """

    def __init__(
        self,
        config: "Settings",
        group: str,
        topic: str,
        handle: Callable[[Any], None],
        report: Callable[[str, dict[int, int | None]], None],
        commit_every: int,
    ) -> None:
        self.topic, self.handle, self.report, self.commit_every = topic, handle, report, commit_every
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
        """Read as long as the process lives."""
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
        """Commit before other members get the partitions, so that they repeat nothing."""
        if self._handled:
            await self.reader.commit_async(self._handled)
            self._committed()

    async def on_partitions_lost(self, _lost: Any) -> None:
        """Forget the offsets: another member has the partitions now, and began at their last commit."""
        self._handled, self._since = {}, 0

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.report("assigned", {tp.partition: None for tp in assigned})

    def _committed(self) -> None:
        self.report("committed", {tp.partition: at.offset for tp, at in self._handled.items()})
        self._handled, self._since = {}, 0


def main(group: str, topic: str, name: str, commit_every: str) -> None:
    """Run a member that reports on standard output, one JSON object per line."""

    def write(**fields: Any) -> None:
        print(json.dumps({"member": name} | fields), flush=True)

    def handle(record: Any) -> None:
        write(event="handled", partition=record.partition, offset=record.offset, value=json.loads(record.value))

    def report(event: str, offsets: dict[int, int | None]) -> None:
        write(event=event, offsets=offsets)

    end_with_parent()
    Member(settings.load(), group, topic, handle, report, int(commit_every)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
