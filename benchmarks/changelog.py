"""What a new consumer of a table gains by its compacted changelog topic: ``python benchmarks/changelog.py [keys] [changes]``.

It writes the same changes of rows into two topics: one that keeps everything, and a compacted one. When the broker has compacted
that (really: its log cleaner has run), it reads both from the beginning, folds them by key, and compares the tables.
"""

import json
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from confluent_kafka import Producer
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.ports import started

from lockstep.kafka_clients import KEEP_ALL, admin, confluent_config, consumer, create_topics, latest_by_key
from lockstep.settings import Settings

LOG, COMPACTED = "all-changes", "changelog.orders"
# Small segments, so that minutes are enough to see the cleaner: on a topic of months, most segments are closed anyway.
EAGER = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.01"}


def write(settings: Settings, keys: int, changes: int) -> None:
    """Write the same changes of random rows into both topics."""
    # A seed, not a secret.
    dice = random.Random(1)  # noqa: S311
    producer = Producer(confluent_config(settings) | {"acks": "all", "linger.ms": 50})
    for n in range(changes):
        order = f"{dice.randrange(keys)}"
        row = {"order_id": order, "user_id": f"u{n % 997}", "country": "United Kingdom", "kind": "sale", "seq": n}
        key, value = json.dumps({"order_id": order}), None if dice.random() < 0.02 else json.dumps(row)
        for topic in (LOG, COMPACTED):
            producer.produce(topic, key=key, value=value)
        if n % 5_000 == 0:
            producer.flush(60)
    producer.flush(60)


def records(settings: Settings, topic: str) -> int:
    """How many records the topic has now."""
    with closing(consumer(settings)) as reader:
        partition = TopicPartition(topic, 0)
        reader.assign([partition])
        reader.seek_to_beginning()
        end, found = reader.end_offsets([partition])[partition], 0
        while reader.position(partition) < end:
            found += sum(map(len, reader.poll(timeout_ms=500).values()))
        return found


def measured(settings: Settings, topic: str) -> tuple[dict[bytes, bytes], float]:
    """The table that the topic stands for, and the seconds that it took."""
    began = time.monotonic()
    return latest_by_key(settings, topic), time.monotonic() - began


def main(keys: int, changes: int) -> None:
    """Write, wait for the cleaner, and read both in turn, three times."""
    with tempfile.TemporaryDirectory() as home, started(Path(home), services=["kafka"]) as stack:
        settings = stack.settings
        one = {"num_partitions": 1}
        create_topics(settings, {LOG: {**one, "configs": KEEP_ALL}, COMPACTED: {**one, "configs": EAGER}})
        write(settings, keys, changes)
        # The newest segment is never compacted: it is closed by the next record.
        with closing(admin(settings)) as client:
            client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, COMPACTED, {**EAGER, "segment.ms": "1000"})])

        def cleaned() -> bool:
            nudge = Producer(confluent_config(settings))
            for topic in (LOG, COMPACTED):
                nudge.produce(topic, key=json.dumps({"order_id": "0"}), value=json.dumps({"order_id": "0"}))
            nudge.flush(30)
            return records(settings, COMPACTED) < 1.2 * keys

        Retrying(stop=stop_after_delay(300), wait=wait_fixed(3), retry=retry_if_not_result(bool))(cleaned)
        print(f"{changes:,} changes of {keys:,} rows\n")
        print("| | records | seconds, three times |\n|---|---|---|")
        tables: dict[str, dict[bytes, bytes]] = {}
        seconds: dict[str, list[float]] = {LOG: [], COMPACTED: []}
        for _ in range(3):
            for topic in seconds:
                tables[topic], took = measured(settings, topic)
                seconds[topic].append(took)
        for topic, took in seconds.items():
            print(f"| {topic} | {records(settings, topic):,} | {', '.join(f'{each:.2f}' for each in took)} |")
        print(f"\nthe tables are equal: {tables[LOG] == tables[COMPACTED]}, {len(tables[LOG]):,} rows")
        print(f"ratio: {min(seconds[LOG]) / min(seconds[COMPACTED]):.1f}")


if __name__ == "__main__":
    main(*map(int, (*sys.argv[1:], 20_000, 600_000)[:2]))
