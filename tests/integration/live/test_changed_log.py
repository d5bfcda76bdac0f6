"""A live query does not go on in another log than bronze has read."""

from contextlib import closing

from lockstep.catalog import connect
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import admin, ensure_topics
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
