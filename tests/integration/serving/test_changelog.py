"""A table that is rebuilt from its changelog topic alone is the table: after kills, replays and compaction."""

import json
import random
from collections import defaultdict
from contextlib import closing
from itertools import count

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support.slow import slow

from lockstep.cli.changelog import sentence
from lockstep.definition.tables import Tables
from lockstep.kafka_clients import admin, consumer
from lockstep.serving import publish_changelog
from lockstep.serving.changelog import Change, topic_of, verify
from lockstep.serving.publish_changelog import forget, publish_all
from lockstep.sinks import kafka_senders


def publish(source):
    return publish_all(source.settings, [source.contract]).get(source.contract.name, 0)


def rebuilt(source):
    """The table that a consumer has which reads the topic from its beginning, by order; and each order's values as they came."""
    values = defaultdict(list)
    with closing(consumer(source.settings)) as reader:
        partitions = [TopicPartition(topic_of(source.contract), p) for p in range(source.contract.partitions)]
        reader.assign(partitions)
        reader.seek_to_beginning()
        ends = reader.end_offsets(partitions)
        while any(reader.position(partition) < end for partition, end in ends.items()):
            for record in (r for records in reader.poll(timeout_ms=500).values() for r in records):
                kind = json.loads(record.value)["kind"] if record.value else None
                values[json.loads(record.key)["order_id"]].append(kind)
    return {key: kinds[-1] for key, kinds in values.items() if kinds[-1]}, values


def change_some(source, dice, lsn):
    """Ten changes of eight orders; each has another kind."""
    for at in range(lsn, lsn + 100, 10):
        key = str(dice.randrange(8))
        if dice.random() < 0.3:
            source.delete(at, order_id=key)
        else:
            source.insert(key, at, kind=f"kind{at:04}")
    source.refine()


def test_each_change_of_a_row_is_published_once_and_the_topic_is_the_table(source):
    dice = random.Random(3)
    for lsn in (10, 1_000, 2_000):
        change_some(source, dice, lsn)
        assert publish(source) > 0
        assert publish(source) == 0
        assert rebuilt(source)[0] == source.orders()
    found = verify(source.settings, source.contract)
    assert (found.rows, found.differing) == (len(source.orders()), ())
    source.insert("new", 3_000)
    source.refine()
    assert publish(source) == 1, "rows that have not changed are not published again"


class Killed(BaseException):
    """As SIGKILL, nothing catches it."""


@pytest.mark.parametrize(
    "place",
    [*(slow(place) for place in ("deliver-before", "deliver-open")), "deliver-sent"],
)
@pytest.mark.parametrize("nth", [1, slow(2)])
def test_a_kill_neither_loses_a_row_nor_brings_an_older_one_back(source, monkeypatch, place, nth):
    monkeypatch.setattr(publish_changelog, "AT_ONCE", 2)
    dice, passed = random.Random(nth), count(1)

    def failpoint(name):
        if name == place and next(passed) == nth:
            raise Killed

    change_some(source, dice, 10)
    with monkeypatch.context() as patch:
        patch.setattr(kafka_senders, "failpoint", failpoint)
        with pytest.raises(Killed):
            publish(source)
    publish(source)
    assert rebuilt(source)[0] == source.orders()
    change_some(source, dice, 1_000)
    publish(source)
    table, values = rebuilt(source)
    assert table == source.orders()
    for kinds in values.values():
        inserted = [kind for kind in kinds if kind]
        assert inserted == sorted(inserted), "no reader sees an older row after a newer one"


def test_rows_that_others_have_changed_are_published_and_keys_that_are_gone_are_deleted(spark, source):
    for n, key in enumerate("123"):
        source.insert(key, 10 + 10 * n)
    source.refine()
    assert publish(source) == 3
    table = Tables.of(source.contract).current
    spark.sql(f"UPDATE {table} SET kind = 'replayed' WHERE order_id = '1'")
    spark.sql(f"DELETE FROM {table} WHERE order_id = '2'")
    assert publish(source) == 3, "two rows, and a delete"
    assert rebuilt(source)[0] == {"1": "replayed", "3": "sale"}


def test_what_somebody_else_has_written_to_the_topic_is_named(source):
    source.insert("1", 10)
    source.refine()
    publish(source)
    sender = kafka_senders.AtLeastOnce(source.settings, "intruder", topic_of(source.contract), 1)
    sender.send([Change("x", '{"order_id":"9"}', "{}")], 1)
    found = verify(source.settings, source.contract)
    assert found.differing == ('{"order_id":"9"}',)
    assert "1 keys differ; nobody else may write to it" in sentence(found)


def test_after_compaction_the_topic_is_still_the_table(source):
    dice, topic, lsn = random.Random(5), topic_of(source.contract), count(1_000, 1_000)
    change_some(source, dice, 10)
    sent = publish(source)
    eager = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.001"}
    with closing(admin(source.settings)) as client:
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, eager)])

    def compacted():
        """Whether the cleaner has taken records away. Each round closes the segment of the one before."""
        nonlocal sent
        change_some(source, dice, next(lsn))
        sent += publish(source)
        return sum(map(len, rebuilt(source)[1].values())) < sent

    Retrying(stop=stop_after_delay(120), wait=wait_fixed(1), retry=retry_if_not_result(bool))(compacted)
    assert rebuilt(source)[0] == source.orders()
    assert verify(source.settings, source.contract).differing == ()


def test_a_topic_that_was_removed_is_published_anew(source):
    source.insert("1", 10)
    source.refine()
    assert publish(source) == 1
    forget(source.settings, source.contract.name)
    assert verify(source.settings, source.contract).version == -1
    assert publish(source) == 1
    assert rebuilt(source)[0] == {"1": "sale"}
