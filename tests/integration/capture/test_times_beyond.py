"""Times that Spark cannot hold, in a captured table."""

import uuid

from tests.support.captured import captured_table, taken

from lockstep.definition.tables import Tables
from lockstep.reconcile.with_source import Kind, verify
from lockstep.settings import Settings
from lockstep.stack import postgres
from lockstep.stack.stack import Stack

BEYOND = ["infinity", "-infinity", "0044-03-15 BC", "12026-01-01"]


def test_times_beyond_the_calendar_are_set_aside_and_named_and_the_other_rows_go_on(spark, settings, captured):
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}, "the snapshot is over: what comes now is streamed"
        write(settings, captured.name)
        found = verify(spark, settings, captured, 120)
    assert found.counts == {Kind.MISSING: 2 * len(BEYOND)}
    assert [difference.key for difference in found.examples[:2]] == [("100",), ("101",)]
    reasons = spark.table(Tables.of(captured).quarantine).groupBy("_reason").count().collect()
    assert {row["_reason"] for row in reasons} <= {"out of range at", "out of range day", "malformed"}
    assert sum(row["count"] for row in reasons) == 2 * len(BEYOND)


def test_a_snapshot_loses_the_era_of_a_date_before_christ_and_the_comparison_names_it(stack: Stack, spark, settings):
    """Debezium reads the rows of a snapshot by JDBC, whose dates have no era: 44 BC comes as 44."""
    name = f"beyond_{uuid.uuid4().hex[:8]}"
    with (
        captured_table(stack, before=lambda: write(settings, name), table=name) as contract,
        taken(settings, contract),
    ):
        found = verify(spark, settings, contract, 120)
    assert found.counts == {Kind.MISSING: 2 * len(BEYOND) - 1, Kind.CHANGED: 1}


def write(settings: Settings, table: str) -> None:
    """Rows with each of the times as ``at`` and as ``day``, and one with a day of the calendar."""
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        for number, time in enumerate(BEYOND):
            sql.execute(f"INSERT INTO public.{table} (id, at) VALUES (%s, %s)", (100 + number, time))
            sql.execute(f"INSERT INTO public.{table} (id, day) VALUES (%s, %s)", (200 + number, time))
        sql.execute(f"INSERT INTO public.{table} (id, day) VALUES (300, '2026-11-25')")
