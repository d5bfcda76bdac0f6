"""A captured table is in the lake what it is in its database, whatever transactions do and whoever is killed."""

import os
import signal
from contextlib import closing

from tests.support.captured import taken
from tests.support.invariants import broken_tiles, fallen_commits
from tests.support.transactions import Writer

from lockstep import ledger
from lockstep.definition.tables import Tables
from lockstep.reconcile.with_source import Kind, verify
from lockstep.stack import postgres

TRANSACTIONS = 500
BEYOND = ["infinity", "-infinity", "0044-03-15 BC", "12026-01-01"]


def test_the_lake_equals_the_database_under_random_transactions_and_changes_of_columns_while_connect_is_killed(
    spark, settings, stack, captured
):
    def equals() -> bool:
        found = verify(spark, settings, captured, 120)
        assert (found.counts, found.rows > 10) == ({}, True), found
        return True

    with taken(settings, captured):
        with closing(Writer(settings, captured.name, seed=1)) as writer:
            writer.write(TRANSACTIONS // 4)
        # PostgreSQL shows a table that is rewritten as empty to who reads it as it was: Debezium's snapshot is over now.
        assert equals()
        with closing(Writer(settings, captured.name, seed=2, alters=1 / 20)) as writer:
            writer.write(TRANSACTIONS // 4)
            os.kill(stack.pid("connect"), signal.SIGKILL)
            writer.write(TRANSACTIONS // 4)
            # The database goes on while it is compared.
            assert equals()
            writer.write(TRANSACTIONS // 4)
            assert equals()

    tables = Tables.of(captured)
    columns = [*captured.columns]
    current = spark.table(tables.current).where("NOT _deleted").select(columns)
    is_current = spark.table(tables.history).where("is_current").select(columns)
    assert is_current.exceptAll(current).isEmpty()
    assert is_current.count() == current.count()
    assert broken_tiles(spark, captured) == []
    assert fallen_commits(spark, captured) == []
    added = {*ledger.latest(settings, tables.log).unknown}
    assert added
    assert all(name.startswith("added_") for name in added), "and no more: a wider column stays the contract's"


def test_times_beyond_the_calendar_are_set_aside_and_named_and_the_other_rows_go_on(spark, settings, captured):
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        for number, time in enumerate(BEYOND):
            sql.execute(f"INSERT INTO public.{captured.name} (id, at) VALUES (%s, %s)", (100 + number, time))
            sql.execute(f"INSERT INTO public.{captured.name} (id, day) VALUES (%s, %s)", (200 + number, time))
        sql.execute(f"INSERT INTO public.{captured.name} (id, day) VALUES (300, '2026-11-25')")
    with taken(settings, captured):
        found = verify(spark, settings, captured, 120)
    assert found.counts == {Kind.MISSING: 2 * len(BEYOND)}
    assert [difference.key for difference in found.examples[:2]] == [("100",), ("101",)]
    reasons = spark.table(Tables.of(captured).quarantine).groupBy("_reason").count().collect()
    assert {row["_reason"] for row in reasons} <= {"out of range at", "out of range day", "malformed"}
    assert sum(row["count"] for row in reasons) == 2 * len(BEYOND)
