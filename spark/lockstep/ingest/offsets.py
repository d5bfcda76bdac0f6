"""What the broker has now: the id of a topic, its offsets, and how far its logs are still those that were read before."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError, LeaderNotAvailableError, TopicAuthorizationFailedError, for_code
from kafka.protocol.consumer import IsolationLevel, OffsetForLeaderEpochRequest, OffsetSpec
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from lockstep.errors import LockstepError, TopicForbidden
from lockstep.kafka_clients import admin
from lockstep.ledger.ranges import TopicOffsets

if TYPE_CHECKING:
    from lockstep.settings import Settings

# A broker that was killed leads its partitions again after about 15 s, the default session timeout of a broker and a restart.
_NO_LEADER_SECONDS = 30.0
_Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic


class TopicMissing(LockstepError):
    """The topic does not exist on the broker."""


def topic_offsets(settings: "Settings", topic: str, epochs: Mapping[int, int] | None = None) -> TopicOffsets:
    """Ask the broker for the topic's id and offsets, and whether its log is still the one that was read.

    Args:
        epochs: per partition, the leader epoch in which it was read; see :attr:`TopicOffsets.unchanged_to`.

    Raises:
        TopicMissing: there is no such topic.
        TopicForbidden: the account may not see it.
    """
    return offsets_of_topics(settings, [topic], {topic: epochs or {}})[topic]


def offsets_of_topics(
    settings: "Settings", topics: list[str], epochs: Mapping[str, Mapping[int, int]] | None = None
) -> dict[str, TopicOffsets]:
    """The offsets of several topics by name, over one connection.

    Raises:
        TopicMissing: one of them does not exist.
        TopicForbidden: the account may not see one of them.
    """
    offsets = offsets_of_existing_topics(settings, topics, epochs)
    if missing := [t for t in topics if t not in offsets]:
        for topic in forbidden_topics(settings, missing):
            raise TopicForbidden(settings.kafka, topic, "see", "DESCRIBE")
        raise TopicMissing(
            f"{settings.kafka} has no topic {', '.join(missing)}. Create it with `lockstep up kafka`, which makes the topics of "
            "all contracts."
        )
    return offsets


def offsets_of_existing_topics(
    settings: "Settings", topics: list[str], epochs: Mapping[str, Mapping[int, int]] | None = None
) -> dict[str, TopicOffsets]:
    """The offsets by name of those of the topics that exist, and that the account may see.

    Args:
        epochs: by topic and partition, the leader epoch in which it was read.
    """
    if not topics:
        # The admin client takes no names for all names.
        return {}
    with closing(admin(settings)) as client:
        return _offsets(client, topics, epochs or {})


def forbidden_topics(settings: "Settings", topics: Iterable[str]) -> list[str]:
    """Those of the topics that the account may not see, if they exist: the brokers do not say."""
    asked = sorted(topics)
    if not asked:
        return []
    with closing(admin(settings)) as client:
        described = client.describe_topics(asked)
    return [t["name"] for t in described if t["error_code"] == TopicAuthorizationFailedError.errno]


def offsets_at(
    settings: "Settings", partitions: Iterable[tuple[str, int]], instant: datetime
) -> dict[tuple[str, int], int]:
    """By topic and partition, the first offset whose record has a Kafka timestamp from ``instant`` on.

    Every record before it is older. A partition without such a record is missing: all that it has is older.
    """
    asked = dict.fromkeys((TopicPartition(*p) for p in partitions), int(instant.timestamp() * 1000))
    if not asked:
        return {}
    with closing(admin(settings)) as client:
        found = client.list_partition_offsets(asked)
    return {(tp.topic, tp.partition): at.offset for tp, at in found.items() if at.offset >= 0}


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, KafkaError) and error.retriable


@retry(
    retry=retry_if_exception(_is_passing),
    wait=wait_fixed(0.2),
    stop=stop_after_delay(_NO_LEADER_SECONDS),
    reraise=True,
)
def _offsets(
    client: KafkaAdminClient, topics: list[str], epochs: Mapping[str, Mapping[int, int]]
) -> dict[str, TopicOffsets]:
    described = {t["name"]: t for t in client.describe_topics(topics) if t["partitions"]}
    leaders = {
        TopicPartition(name, p["partition_index"]): p["leader_id"]
        for name, topic in described.items()
        for p in topic["partitions"]
    }
    if leaderless := [tp for tp, leader in leaders.items() if leader < 0]:
        raise LeaderNotAvailableError(f"{leaderless} have no leader")
    first = client.list_partition_offsets(dict.fromkeys(leaders, OffsetSpec.EARLIEST))
    stable = client.list_partition_offsets(dict.fromkeys(leaders, OffsetSpec.LATEST), IsolationLevel.READ_COMMITTED)
    ends = client.list_partition_offsets(dict.fromkeys(leaders, OffsetSpec.LATEST))
    read = {tp: epochs[tp.topic][tp.partition] for tp in leaders if tp.partition in epochs.get(tp.topic, {})}
    # Within one epoch, a leader never truncates its log.
    asked = {tp: epoch for tp, epoch in read.items() if epoch != stable[tp].leader_epoch}
    unchanged = _ends_of_epochs(client, leaders, asked)
    return {
        name: TopicOffsets(
            topic=name,
            topic_id=str(topic["topic_id"]),
            partitions={tp.partition: (first[tp].offset, stable[tp].offset) for tp in leaders if tp.topic == name},
            ends={tp.partition: ends[tp].offset for tp in leaders if tp.topic == name},
            epochs={tp.partition: stable[tp].leader_epoch for tp in leaders if tp.topic == name},
            unchanged_to={tp.partition: unchanged[tp] for tp in asked if tp.topic == name},
        )
        for name, topic in described.items()
    }


def _ends_of_epochs(
    client: KafkaAdminClient, leaders: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Where the log of each partition ends that was written up to a leader epoch; -1: the leader does not know the epoch.

    The request is OffsetForLeaderEpoch (KIP-320), for which neither of the Python clients has a method.
    """
    by_leader: dict[int, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for tp, epoch in epochs.items():
        asked = _Topic.OffsetForLeaderPartition(partition=tp.partition, current_leader_epoch=-1, leader_epoch=epoch)
        by_leader[leaders[tp]][tp.topic].append(asked)
    found: dict[TopicPartition, int] = {}
    for leader, topics in by_leader.items():
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[_Topic(topic=name, partitions=partitions) for name, partitions in topics.items()]
        )
        response = client._manager.run(client._manager.send, request, leader)
        for topic in response.topics:
            for answer in topic.partitions:
                if answer.error_code:
                    raise for_code(answer.error_code)(f"{topic.topic}-{answer.partition}")
                found[TopicPartition(topic.topic, answer.partition)] = answer.end_offset
    return found
