"""Changelog topics: the table of their newest records is the same before and after compaction."""

import threading
from contextlib import closing

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.kafka_clients import admin, confluent_config, consumer, latest_by_key
from shop.readers.topics import own_topic

USERS = [
    (b"user:123", b"Alice"),
    (b"user:456", b"Bob"),
    (b"user:123", b"Alice Updated"),
    (b"user:789", b"Carol"),
    (b"user:456", b"Bob Updated"),
    (b"user:123", b"Alice V3"),
]
CLOSING = b"closing"
TABLE = {b"user:123": b"Alice V3", b"user:456": b"Bob Updated", b"user:789": b"Carol"}


@pytest.fixture
def compacted(settings):
    """A compacted topic that is cleaned from ``let_the_cleaner_in`` on; each record closes the segment of the one before."""
    eager = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.001"}
    with own_topic(settings, 1, eager | {"min.compaction.lag.ms": str(10 * 365 * 86_400_000)}) as name:
        yield name


def let_the_cleaner_in(settings, topic):
    with closing(admin(settings)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"min.compaction.lag.ms": "0"})])


def send(settings, topic, records):
    producer = Producer(confluent_config(settings) | {"acks": "all"})
    for n, (key, value) in enumerate(records):
        producer.produce(topic, key=key, value=value, timestamp=1_790_000_000_000 + n * 10_000)
        assert producer.flush(30) == 0


def offsets(settings, topic):
    with closing(consumer(settings)) as reader:
        partition = TopicPartition(topic, 0)
        reader.assign([partition])
        reader.seek_to_beginning()
        end, found = reader.end_offsets([partition])[partition], []
        while reader.position(partition) < end:
            found += [(r.offset, r.key) for records in reader.poll(timeout_ms=500).values() for r in records]
        return [offset for offset, key in found if key != CLOSING]


def test_compaction(settings, compacted):
    """Of offsets 0 to 5 only 3, 4 and 5 survive, and the table rebuilt from them is the same."""
    send(settings, compacted, [*USERS, (CLOSING, None)])
    assert offsets(settings, compacted) == [0, 1, 2, 3, 4, 5]
    assert latest_by_key(settings, compacted) == TABLE
    let_the_cleaner_in(settings, compacted)
    wait_until = Retrying(stop=stop_after_delay(90), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))
    wait_until(lambda: len(offsets(settings, compacted)) < len(USERS))
    assert offsets(settings, compacted) == [3, 4, 5]
    assert latest_by_key(settings, compacted) == TABLE


def test_a_key_that_was_deleted_is_not_in_the_table(settings, compacted):
    send(settings, compacted, [*USERS, (b"user:789", None)])
    assert latest_by_key(settings, compacted) == {k: v for k, v in TABLE.items() if k != b"user:789"}


def test_the_table_waits_for_an_open_transaction_so_that_nothing_committed_is_missed(settings, compacted):
    """Another writer's open transaction holds readers back; what was committed behind it must be read all the same."""
    slow, fast = (Producer(confluent_config(settings) | {"transactional.id": f"{compacted}-{n}"}) for n in range(2))
    for producer in (slow, fast):
        producer.init_transactions(30)
        producer.begin_transaction()
    slow.produce(compacted, key=b"a", value=b"never committed")
    slow.flush(30)
    fast.produce(compacted, key=b"b", value=b"committed")
    fast.commit_transaction(30)
    timer = threading.Timer(2, slow.abort_transaction)
    timer.start()
    assert latest_by_key(settings, compacted) == {b"b": b"committed"}
    timer.join()
