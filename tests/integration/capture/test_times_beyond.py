"""Times that Spark cannot hold, in a captured table."""

from tests.support.captured import taken

from lockstep.definition.tables import Tables
from lockstep.reconcile.with_source import Kind, verify
from lockstep.stack import postgres

BEYOND = ["infinity", "-infinity", "0044-03-15 BC", "12026-01-01"]


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
