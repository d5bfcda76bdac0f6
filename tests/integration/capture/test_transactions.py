"""A captured table is in the lake what it is in its database, whatever transactions do and whoever is killed."""

import os
import signal
from contextlib import closing

from tests.support.captured import taken
from tests.support.transactions import Writer

from lockstep.definition.tables import Tables
from lockstep.reconcile.with_source import Kind, verify
from lockstep.stack import postgres

TRANSACTIONS = 500
BEYOND = ["infinity", "-infinity", "0044-03-15 BC", "12026-01-01"]


def test_the_lake_equals_the_database_under_random_transactions_while_connect_is_killed(
    spark, settings, stack, captured
):
    with taken(settings, captured), closing(Writer(settings, captured.name, seed=1)) as writer:
        writer.write(TRANSACTIONS // 2)
        os.kill(stack.pid("connect"), signal.SIGKILL)
        writer.write(TRANSACTIONS // 4)
        # The database goes on while it is compared.
        found = verify(spark, settings, captured, 120)
        assert (found.counts, found.rows > 10) == ({}, True), found
        writer.write(TRANSACTIONS // 4)
        assert verify(spark, settings, captured, 120).counts == {}

    tables = Tables.of(captured)
    now = spark.table(tables.history).where("known_to IS NULL")
    columns = [*captured.columns]
    current = spark.table(tables.current).where("NOT _deleted").select(columns)
    assert now.where("is_current").select(columns).exceptAll(current).isEmpty()
    assert now.where("is_current").count() == current.count()
    now.createOrReplaceTempView("now")
    follows = "SELECT valid_to, lead(valid_from) OVER (PARTITION BY id ORDER BY valid_from) AS next, * FROM now"
    assert spark.sql(f"SELECT * FROM ({follows}) WHERE valid_from >= valid_to OR valid_to > next").isEmpty(), (
        "no overlap"
    )
    by_debezium = f"""
        SELECT s._commit_lsn < lag(s._commit_lsn) OVER (ORDER BY s._offset) AS fell
        FROM {tables.log} s JOIN {tables.bronze} b ON s._partition = b.partition AND s._offset = b.offset
        WHERE s._op <> 'r' AND get_json_object(CAST(b.value AS STRING), '$.source.connector') = 'postgresql'"""
    assert spark.sql(f"SELECT * FROM ({by_debezium}) WHERE fell").isEmpty()


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
