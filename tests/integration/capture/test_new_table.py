"""A table that is captured later than others: its rows of before come too, and the others are not read again."""

import psycopg2
import pytest
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support.captured import captured_table, taken

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.deploy import capture
from lockstep.deploy.plan import Capture
from lockstep.reconcile.with_source import verify
from lockstep.stack import connector, postgres, source


def snapshot_rows(spark, contract):
    return spark.table(Tables.of(contract).log).where("_op = 'r'").count()


def passed(settings):
    """Wait until Debezium is past everything that the log has now, so that it comes to none of it again."""
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        sql.execute("SELECT pg_current_wal_insert_lsn()")
        ((end,),) = sql.fetchall()

        def is_past() -> bool:
            sql.execute(
                "SELECT bool_and(confirmed_flush_lsn >= %s) FROM pg_replication_slots WHERE slot_name = 'lockstep'",
                (end,),
            )
            return sql.fetchone() == (True,)

        Retrying(stop=stop_after_delay(90), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))(is_past)


def test_the_rows_of_a_new_table_come_and_those_of_the_others_are_not_read_again(spark, settings, stack, captured):
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}
    before = snapshot_rows(spark, captured)
    assert before > 0
    with captured_table(stack, lambda: passed(settings)) as new, taken(settings, captured), taken(settings, new):
        found = verify(spark, settings, new, 120)
        assert (found.counts, found.rows > 5) == ({}, True)
        with psycopg2.connect(settings.dsn(settings.package)) as database, database.cursor() as sql:
            sql.execute(f"DELETE FROM public.{new.name} WHERE id = (SELECT min(id) FROM public.{new.name})")
            sql.execute(f"INSERT INTO public.{captured.name} (id) VALUES (1000)")
        assert verify(spark, settings, new, 120).counts == {}
        assert verify(spark, settings, captured, 120).counts == {}
    assert snapshot_rows(spark, captured) == before
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        sql.execute("SELECT count(*) FROM public.debezium_signal")
        assert sql.fetchone() == (0,)


@pytest.mark.slow
def test_with_its_last_table_the_connector_goes_and_a_table_that_comes_back_is_read_again(
    spark, settings, stack, captured, monkeypatch
):
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}
    with monkeypatch.context() as patch:
        patch.delitem(CONTRACTS, captured.name)
        for name in [n for n, contract in CONTRACTS.items() if contract.kind == "changes"]:
            patch.delitem(CONTRACTS, name)
        assert f"public.{captured.name}" in capture.look(settings).gone
        connector.remove(settings, settings.package)
        assert capture.look(settings) == Capture()
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        sql.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'lockstep'")
        assert sql.fetchone() == (0,)
        sql.execute(f"DELETE FROM public.{captured.name} WHERE id = (SELECT min(id) FROM public.{captured.name})")
        sql.execute(f"INSERT INTO public.{captured.name} (id) VALUES (2000)")
    assert f"public.{captured.name}" in capture.look(settings).new
    connector.register(settings)
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}


def test_the_plan_names_what_a_new_table_lacks(settings, stack, captured, monkeypatch):
    with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
        sql.execute("CREATE TABLE public.poor (place TEXT PRIMARY KEY, id BIGINT)")
        try:
            table = source.look_at(settings, settings.package, ["public.poor", "public.none"])
        finally:
            sql.execute("DROP TABLE public.poor")
    assert [*table] == ["public.poor"]
    lacking = [*capture.lacks("public.poor", CONTRACTS[captured.name], table["public.poor"])]
    assert [line.partition(":")[0] for line in lacking] == [
        "its primary key is (place), and the contract's unique_id (id)",
        "it has no column amount, any_number, at, day, document, flag, note, ratio, size, tags, updated_at, which will be null",
        "its deletes have no more than the key",
    ]
