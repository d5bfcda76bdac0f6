"""A row that counts is in both layers, whatever the order of the timestamps, and whenever its partition was made."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from pyspark import cloudpickle
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support.shop import Shop, add_partitions

from lockstep import ledger, service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.definition import Input, Keyed
from lockstep.definition.tables import gold_of, live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def _each(_, event):
    return None, [{"id": event.data["event_id"]}]


@pytest.fixture
def keyed(stream):
    """A row for each view of a page, at the time of the view; ten seconds late at most."""
    return Keyed(
        name=f"{stream.name}_each",
        columns={"id": "STRING"},
        key=("id",),
        allowed_lateness=timedelta(seconds=10),
        inputs=(Input(stream.name, "user_id", ("event_id",)),),
        process=_each,
    )


def rolled_up(spark, settings, stream, view):
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    return roll_up(spark, settings, view, "run")


def ids(rows, table):
    return sorted(row["id"] for row in rows(table))


def test_a_record_behind_younger_ones_counts_by_the_time_that_the_log_has_passed(
    spark, settings, stream, keyed, shop, rows
):
    shop.heartbeat(0)
    shop.view("young", 20, arrives_after=0)
    shop.flush()
    with connect(settings, "live") as own:
        running = service.start(own, settings, keyed)
        running.processAllAvailable()
        rolled_up(spark, settings, stream, keyed)
        # Its timestamp is 9 s behind, so it arrives at 18: the bound is 2 s. By its timestamp it is 3 s late.
        shop.view("late by 10", 8, arrives_after=3)
        shop.view("late by 11", 7, arrives_after=4)
        shop.view("late by its timestamp", 5, arrives_after=10.5)
        shop.flush()
        entry = rolled_up(spark, settings, stream, keyed)
        assert entry.counts == {"counted": 1, "ignored": 2, "side_output": 0}
        running.processAllAvailable()
        shop.heartbeat(60)
        shop.flush()
        rolled_up(spark, settings, stream, keyed)
        running.processAllAvailable()
        running.stop()
    assert ids(rows, gold_of(keyed)) == ids(rows, live_of(keyed)) == ["late by 10", "young"]
    assert sorted(row["event_id"] for row in rows(f"late.{keyed.name}")) == ["late by 11", "late by its timestamp"]
    report = reconcile(spark, settings, keyed, "run")
    assert (report.verdict, report.windows) == ("equal", 1)


def test_partitions_added_under_a_running_query_are_read_at_once_and_after_a_restart(
    spark, settings, stream, keyed, shop, rows
):
    shop.heartbeat(0)
    shop.view("before", 1)
    shop.flush()
    with connect(settings, "live") as own:
        running = service.start(own, settings, keyed)
        running.processAllAvailable()
        rolled_up(spark, settings, stream, keyed)
        add_partitions(settings, stream, 5)
        later = Shop(settings, stream)
        for partition in (3, 4):
            event = {"event_id": f"p{partition}", "event_time": "2026-11-10T10:00:02Z", "user_id": "u", "page": "/"}
            later.raw(json.dumps(event).encode(), 3, partition=partition)
            later.raw(None, 60, partition=partition, headers=[("lockstep-heartbeat", b"1")])
        later.heartbeat(60)
        later.flush()
        running.processAllAvailable()
        running.stop()
    assert ids(rows, live_of(keyed)) == ["before", "p3", "p4"]
    with connect(settings, "live") as own:
        running = service.start(own, settings, keyed)
        later.view("after", 70)
        later.heartbeat(120)
        for partition in (3, 4):
            later.raw(None, 120, partition=partition, headers=[("lockstep-heartbeat", b"1")])
        later.flush()
        running.processAllAvailable()
        running.stop()
    rolled_up(spark, settings, stream, keyed)
    assert ids(rows, gold_of(keyed)) == ids(rows, live_of(keyed)) == ["after", "before", "p3", "p4"]
    assert {r.partition for r in ledger.latest(settings, gold_of(keyed)).ranges} == set(range(5))
    assert reconcile(spark, settings, keyed, "run").verdict == "equal"


def test_a_partition_with_an_open_transaction_does_not_look_idle_where_the_broker_stamps_the_records(
    spark, settings, stream, keyed, rows
):
    """Review finding 9: the stamps of others went on, and what the transaction had written was late when it was committed."""
    stamps = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, stream.topic, incremental_configs=[stamps])
    config = confluent_config(settings) | {"log_level": 0}
    client = AdminClient(config)
    client.incremental_alter_configs([resource])[resource].result(30)
    slow = Producer(config | {"transactional.id": f"slow-{stream.topic}"})
    slow.init_transactions(30)
    slow.begin_transaction()
    quick = Producer(config)

    def view(producer, event, partition):
        page_view = {"event_id": event, "event_time": f"{datetime.now(UTC):%FT%T.%fZ}", "user_id": "u", "page": "/"}
        producer.produce(stream.topic, json.dumps(page_view).encode(), partition=partition)
        producer.flush(30)

    def all_pass():
        for partition in range(stream.partitions):
            quick.produce(stream.topic, partition=partition, headers=[("lockstep-heartbeat", b"1")])
        quick.flush(30)

    all_pass()
    view(slow, "in the transaction", 0)
    view(quick, "beside it", 1)
    with connect(settings, "live") as own:
        running = service.start(own, settings, keyed)
        for _ in range(2):
            all_pass()
            rolled_up(spark, settings, stream, keyed)
            running.processAllAvailable()
        assert ids(rows, gold_of(keyed)) == ids(rows, live_of(keyed)) == [], "nobody knows what is in the transaction"
        slow.commit_transaction(30)

        def both_are_there():
            all_pass()
            rolled_up(spark, settings, stream, keyed)
            running.processAllAvailable()
            return ids(rows, gold_of(keyed)) == ids(rows, live_of(keyed)) == ["beside it", "in the transaction"]

        # They are final when the lateness is over.
        Retrying(stop=stop_after_delay(60), wait=wait_fixed(1), retry=retry_if_not_result(bool))(both_are_there)
        running.stop()
    assert rows(f"late.{keyed.name}") == []
