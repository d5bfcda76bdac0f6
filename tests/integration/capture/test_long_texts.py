"""A long text that an UPDATE leaves alone: PostgreSQL keeps it apart, and its log has it only with REPLICA IDENTITY FULL."""

import pytest
from tests.support.captured import taken
from tests.support.transactions import LONG

from lockstep.definition.tables import Tables
from lockstep.reconcile.with_source import Difference, Kind, verify
from lockstep.stack import postgres


@pytest.fixture
def sql(settings, captured):
    """Run statements about the captured table, which has its old rows again in the end."""
    table = f"public.{captured.name}"
    with postgres.connected(settings, settings.package) as database, database.cursor() as cursor:
        yield lambda text, *values: cursor.execute(text.format(table=table), values)
        cursor.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL")


def test_a_text_that_an_update_leaves_alone_stays_and_one_that_the_log_does_not_have_is_set_aside(
    spark, settings, captured, sql
):
    with taken(settings, captured):
        sql("INSERT INTO {table} (id, note, tags) VALUES (700, %s, %s)", LONG, [LONG])
        assert verify(spark, settings, captured, 120).counts == {}
        sql("UPDATE {table} SET flag = true WHERE id = 700")
        assert verify(spark, settings, captured, 120).counts == {}, "the row of before has it"
        sql("ALTER TABLE {table} REPLICA IDENTITY DEFAULT")
        sql("UPDATE {table} SET flag = false WHERE id = 700")
        found = verify(spark, settings, captured, 120)
    assert found.counts == {Kind.CHANGED: 1}
    assert found.examples == (Difference(("700",), Kind.CHANGED, ("flag",)),)
    reasons = spark.table(Tables.of(captured).quarantine).select("_reason").collect()
    assert {row["_reason"] for row in reasons} == {"unavailable note"}
