"""A captured table loses a column that its contract names: what is said, what becomes of its rows, and how it goes on."""

from dataclasses import replace
from importlib import import_module

import pytest
from tests.support.captured import captured_table, taken

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.reconcile.with_source import Kind, verify
from lockstep.refine import silver
from lockstep.stack import postgres
from lockstep.stack.new_generation import begin_generation
from lockstep.status.captured import drifts


@pytest.fixture
def captured(stack):
    with captured_table(stack, required=("id", "size")) as contract:
        yield contract


@pytest.fixture
def sql(settings, captured):
    """Run statements about the captured table."""
    with postgres.connected(settings, settings.package) as database, database.cursor() as cursor:
        # Whose rows have a size.
        cursor.execute(f"DELETE FROM public.{captured.name}")
        cursor.execute(
            f"INSERT INTO public.{captured.name} (id, size, note) SELECT n, n, 'old' FROM generate_series(1, 5) n"
        )
        yield lambda text: cursor.execute(text.format(table=f"public.{captured.name}"))


@pytest.fixture
def deploy(monkeypatch):
    """Have another contract, and with it another version of the code."""

    def deployed(contract):
        for module in ("lockstep.ledger.entries", "lockstep.refine.silver"):
            monkeypatch.setattr(import_module(module), "code_version", lambda: "newer")
        monkeypatch.setitem(CONTRACTS, contract.name, contract)
        return contract

    return deployed


def quarantined(spark, contract):
    rows = spark.table(Tables.of(contract).quarantine).where("CAST(_value AS STRING) LIKE '%height%'")
    rows = rows.groupBy("_reason").count().collect()
    return {row["_reason"]: row["count"] for row in rows}


def test_a_column_that_is_dropped_is_named_and_a_new_snapshot_makes_the_lake_equal_again(
    spark, settings, captured, sql
):
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}
        sql("ALTER TABLE {table} DROP COLUMN note")
        sql("UPDATE {table} SET flag = true WHERE id = 1")
        found = verify(spark, settings, captured, 120)
        assert found.counts == {Kind.CHANGED: 4}, "the row that has changed since has null"
        assert {difference.columns for difference in found.examples} == {("note",)}
        assert drifts(settings, [captured.name]) == {
            captured.name: f"public.{captured.name} in the source database has no column note: its changes have null there"
        }
        begin_generation(settings, settings.package)
        assert verify(spark, settings, captured, 120).counts == {}


@pytest.mark.slow
def test_a_needed_column_that_is_renamed_puts_changes_aside_until_the_contract_has_its_new_name(
    spark, settings, captured, sql, deploy
):
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}
        sql("ALTER TABLE {table} RENAME COLUMN size TO height")
        sql("UPDATE {table} SET height = 100 WHERE id = 1")
        sql("INSERT INTO {table} (id, height) VALUES (6, 600)")
        sql("DELETE FROM {table} WHERE id = 2")
        found = verify(spark, settings, captured, 120)
        assert found.counts == {Kind.CHANGED: 4, Kind.MISSING: 1}, "the delete needs no more than the key"
        assert quarantined(spark, captured) == {"missing size": 2}
        (drift,) = drifts(settings, [captured.name]).values()
        assert drift.endswith("has no column size: its changes have null there, and go to quarantine without size")
    columns = {**captured.columns, "height": "BIGINT"}
    newer = deploy(replace(captured, columns=columns, required=("id", "height")))
    silver.refine(spark, settings, newer, "run")
    with taken(settings, newer):
        begin_generation(settings, settings.package)
        assert verify(spark, settings, newer, 120).counts == {}
    rows = spark.table(Tables.of(newer).current).where("NOT _deleted").select("id", "size", "height").collect()
    assert {tuple(row) for row in rows} == {(1, None, 100), (3, None, 3), (4, None, 4), (5, None, 5), (6, None, 600)}
