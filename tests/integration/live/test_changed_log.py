"""A live query does not go on in another log than bronze has read."""

from contextlib import closing

import pytest
from kafka import TopicPartition

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.resets import plan, reset
from lockstep.definition.tables import live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import admin, ensure_topics
from lockstep.refine.silver import refine
from lockstep.service import members_of, start
from lockstep.service.job import JobHandle
from lockstep.service.log_watch import LogWatch


def test_a_topic_that_was_created_again_stops_its_query_and_keeps_it_from_starting(spark, settings, stream, view, shop):
    shop.view("e1", 0)
    shop.flush()
    ingest(spark, settings, stream, "run")
    watch = LogWatch(settings, [stream])
    watch.look()
    assert watch.changed == {}
    with connect(settings, "live") as own:
        running = start(own, settings, view)
        running.processAllAvailable()
        handle = JobHandle(members_of(settings, [view]), own, running)
        handle.supervise(settings, 0, 1, watch.changed)
        assert running.isActive

        with closing(admin(settings)) as client:
            client.delete_topics([stream.topic])
        ensure_topics(settings, {stream.name: stream})
        watch.look()
        handle.supervise(settings, 0, 1, watch.changed)
        assert not running.isActive
        assert "it was deleted and created again" in handle.error
        handle.supervise(settings, 60, 1, {})
        assert (handle.running, handle.failures) == (None, 2)
        assert "it was deleted and created again" in handle.error


def test_what_retention_took_before_a_live_query_read_it_is_named_with_the_way_on(
    spark, settings, stream, view, shop, rows
):
    def bronze_takes(*events):
        for n, event in enumerate(events):
            shop.view(event, n)
        shop.flush()
        ingest(spark, settings, stream, "run")

    with connect(settings, "live") as own:
        running = start(own, settings, view)
        bronze_takes("e1")
        running.processAllAvailable()
        running.stop()
        bronze_takes("e2", "e3", "e4")
        partition = shop.acknowledged[0][0]
        with closing(admin(settings)) as client:
            client.delete_records({TopicPartition(stream.topic, partition): 3})
        handle = JobHandle(members_of(settings, [view]), own)
        handle.supervise(settings, 0, 1)
        assert handle.running is None
        assert (
            f"{stream.topic}-{partition}: offsets [1, 3) are gone from the log before {view.name} read them"
            in handle.error
        )

        refine(spark, settings, stream, "run")
        roll_up(spark, settings, view, "run")
        with pytest.raises(
            ActionRefused, match=r"final not at all yet in live and not at all yet in gold; .* or wait until the DAGs"
        ):
            plan(spark, settings, view, "earliest")
        shop.heartbeat(3600)
        shop.flush()
        for step in (ingest, refine):
            step(spark, settings, stream, "run")
        roll_up(spark, settings, view, "run")
        reset(settings, plan(spark, settings, view, "earliest"), "retention was too short", "an operator")
        handle = JobHandle(members_of(settings, [view]), own)
        handle.supervise(settings, 0, 1)
        assert handle.error is None
        handle.running.processAllAvailable()
        handle.stop()
    assert [row["views"] for row in rows(live_of(view.name))] == [4], "gold has read them in time"
