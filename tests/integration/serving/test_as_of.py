"""A table is read as it was: at each of its versions, at any time, and before any offsets."""

from datetime import UTC, datetime

import pytest
from tests.support.as_of import asker, assert_as_of_random_moments
from typer.testing import CliRunner

from lockstep import lake, ledger
from lockstep.batch.rollup import roll_up
from lockstep.cli import main
from lockstep.definition.tables import gold_of
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.serving.as_of import AsOfRefused, parse_offsets


@pytest.fixture
def ask(spark, settings):
    return asker(spark, settings)


def test_a_captured_table_is_what_its_changes_had_made_of_it_before_any_offset_version_and_time(source):
    assert_as_of_random_moments(source, 24)


def test_events_and_bronze_have_what_came_before_the_offsets_and_whole_partitions_that_are_not_named(
    spark, settings, stream, shop, ask
):
    for n in range(30):
        shop.view(f"e{n}", n, user_id=f"u{n}")
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    sent = sorted(shop.acknowledged)
    asked = {"": {0: 3, 1: 0}}
    expected = [(p, o) for p, o in sent if o < {0: 3, 1: 0}.get(p, o + 1)]
    assert sorted((r.partition, r.offset) for r in ask(f"bronze.{stream.name}", offsets=asked)) == expected
    assert sorted((r._partition, r._offset) for r in ask(f"silver.{stream.name}", offsets=asked)) == expected


def test_gold_is_the_newest_version_that_has_taken_nothing_after_the_offsets(spark, settings, stream, view, shop, ask):
    counted = []
    for minute in range(3):
        shop.view(f"e{minute}", 60 * minute + 5)
        shop.heartbeat(60 * minute + 90)
        shop.flush()
        for work, what in ((ingest, stream), (refine, stream), (roll_up, view)):
            work(spark, settings, what, "run")
        entry = ledger.latest(settings, gold_of(view))
        counted.append(
            ({stream.name: {r.partition: r.end for r in entry.ranges}}, len(ask(gold_of(view), version=entry.version)))
        )
    assert [rows for _, rows in counted] == [1, 2, 3]
    for offsets, rows in counted:
        assert len(ask(gold_of(view), offsets=offsets)) == rows
    with pytest.raises(AsOfRefused, match="no commit that its log still has comes before these offsets"):
        ask(gold_of(view), offsets={"": {0: 0, 1: 0, 2: 0}})


def test_what_it_cannot_answer_it_refuses_with_the_way_out(spark, settings, stream, view, shop, ask):
    shop.view("e1", 5)
    shop.flush()
    ingest(spark, settings, stream, "run")
    bronze = f"bronze.{stream.name}"
    for table, moment, reason in [
        (bronze, {"version": 99}, "has no version 99: it has 0 to "),
        (bronze, {"time": datetime(2020, 1, 1, tzinfo=UTC)}, "its log begins at .* ask for offsets"),
        (bronze, {"offsets": {"orders": {0: 1}}}, f"is made of {stream.name}, and the offsets are of orders"),
        (f"serving.{view.name}", {"version": 1}, "is no table of the lake. A SQL view has no versions"),
        ("ops.ledger", {"offsets": {"": {0: 1}}}, "no table of the lake|has no offsets of its own"),
    ]:
        with pytest.raises(AsOfRefused, match=reason):
            ask(table, **moment)


@pytest.mark.parametrize("text", ["", "0", "0=", "0=1,", "a b:0=1", "0=-1", "page-views:0=1"])
def test_offsets_that_are_none_are_refused(text):
    with pytest.raises(AsOfRefused, match="write partition=offset"):
        parse_offsets([text])


def test_the_command_prints_the_rows_and_sql_says_the_same(spark, settings, stream, shop, monkeypatch):
    for n in range(2):
        shop.view(f"e{n}", n)
        shop.flush()
        ingest(spark, settings, stream, "run")
    first = next(c.version for c in lake.commits(settings, f"bronze.{stream.name}") if c.record.get("seq") == 1)
    monkeypatch.setattr("lockstep.settings.load", lambda: settings)

    def said(*arguments):
        result = CliRunner().invoke(main.app, [*arguments, "--csv"])
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout

    table = f"bronze.{stream.name}"
    told = said("asof", table, "--version", str(first))
    assert len(told.splitlines()) == 2
    assert said("sql", f"SELECT * FROM {table} VERSION AS OF {first}") == told
    assert len(said("asof", table, "--time", datetime.now(UTC).isoformat()).splitlines()) == 3
    assert isinstance(CliRunner().invoke(main.app, ["asof", table]).exception, AsOfRefused)
