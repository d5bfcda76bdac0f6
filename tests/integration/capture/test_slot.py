"""The slot that keeps changes for Debezium is dropped: that is named, and the lake ends equal to the database."""

from contextlib import closing

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed
from tests.support.captured import taken
from tests.support.transactions import Writer

from lockstep.reconcile.with_source import verify
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
