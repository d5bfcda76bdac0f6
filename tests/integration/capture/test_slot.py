"""The slot that keeps changes for Debezium: it says how far Debezium is, and where it is dropped, the lake ends equal."""

import uuid
from contextlib import closing

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed
from tests.support.captured import taken
from tests.support.transactions import Writer

from lockstep.kafka_clients import latest_by_key
from lockstep.reconcile.source_rows import await_capture, captured_to
from lockstep.reconcile.with_source import verify
from lockstep.settings import Database
from lockstep.stack import connect, connector, postgres
from lockstep.stack.errors import Unhealthy
from lockstep.stack.source import has_slot

# Whoever reads a slot keeps others from dropping it; Debezium connects again at once.
DROP = """
SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = 'lockstep' AND active;
SELECT pg_drop_replication_slot('lockstep')
"""


def drop_slot(settings):
    patiently = Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.1), reraise=True)
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        for attempt in patiently:
            with attempt:
                sql.execute(DROP)


def test_changes_that_went_with_a_dropped_slot_come_with_a_new_snapshot(spark, settings, captured):
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}
        drop_slot(settings)
        # Nobody keeps these for Debezium; the deletes among them would leave their rows in the lake.
        with closing(Writer(settings, captured.name, seed=5)) as writer:
            writer.write(60)
        assert not has_slot(settings, settings.package, "lockstep"), "Debezium does not begin behind them"
        with pytest.raises(Unhealthy, match="has lost the replication slot lockstep"):
            connect.check(settings)
        connector.register(settings)
        found = verify(spark, settings, captured, 120)
    assert (found.counts, found.rows > 10) == ({}, True), found
    assert "connector shop runs" in connect.check(settings)


def test_what_was_committed_before_an_lsn_is_in_the_topic_once_it_was_waited_for(settings, captured):
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        for number in range(900, 903):
            sql.execute(f"INSERT INTO public.{captured.name} (id) VALUES ({number})")
            sql.execute("SELECT pg_current_wal_insert_lsn() - '0/0'")
            await_capture(settings, settings.package, int(sql.fetchone()[0]), 60)
            assert f'{{"id":{number}}}'.encode() in latest_by_key(settings, captured.topic)


def test_the_slot_of_another_program_does_not_say_how_far_debezium_is(settings):
    name = f"crm_{uuid.uuid4().hex[:6]}"
    settings = settings.model_copy(update={"databases": (Database(name=name),)})
    postgres.post_start(settings)
    slots = [f"lockstep_{name}", f"other_{name}"]
    with postgres.connected(settings, name) as database, database.cursor() as sql:

        def made(slot):
            sql.execute("SELECT lsn - '0/0' FROM pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
            return int(sql.fetchone()[0])

        try:
            other = made(slots[1])
            assert captured_to(settings, name) is None
            own = made(slots[0])
            sql.execute("SELECT pg_logical_emit_message(false, 'test', 'grows')")
            sql.execute("SELECT FROM pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slots[1],))
            assert captured_to(settings, name) == own > other
        finally:
            sql.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = ANY(%s)",
                (slots,),
            )
    with postgres.connected(settings, "postgres") as database, database.cursor() as sql:
        sql.execute(f"DROP DATABASE {name} WITH (FORCE)")
