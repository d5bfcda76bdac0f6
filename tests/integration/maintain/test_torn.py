"""After a power cut, `lockstep ledger repair` ends torn logs of silver and gold, and the next runs take their rows again."""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.shop import Shop
from tests.support.slow import slow
from tests.support.source import Source
from tests.support.torn import cut, lose_data, newest_commits
from typer.testing import CliRunner

from lockstep import ledger
from lockstep.batch.rollup import roll_up
from lockstep.cli.main import app
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.errors import LedgerBroken
from lockstep.ingest.bronze import ingest
from lockstep.lake.small_commits import collect
from lockstep.ledger import archive
from lockstep.ledger.torn import torn_tables
from lockstep.maintain import torn
from lockstep.quality.slices import pending
from lockstep.refine.silver import refine
from lockstep.settings import Settings

Next = Callable[[], None]


def repair(table: str) -> str:
    result = CliRunner().invoke(app, ["ledger", "repair", table, "--by", "an operator", "--reason", "a power cut"])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def offsets(settings: Settings, table: str) -> list[tuple[int, int]]:
    rows = collect(settings, table, "true", ["_partition", "_offset"]).to_pylist()
    return sorted((row["_partition"], row["_offset"]) for row in rows)


@pytest.fixture
def next_rows(spark: Any, settings: Settings, stream: Contract, shop: Shop) -> Next:
    """Take a good row and a bad one into silver and quarantine."""
    numbers = count()

    def take() -> None:
        number = next(numbers)
        shop.view(f"e{number}", number)
        shop.view(f"bad{number}", number, page=None)
        shop.flush()
        ingest(spark, settings, stream, "run")
        assert refine(spark, settings, stream, "run")

    return take


@pytest.mark.parametrize("torn_commits", [1, slow(2)])
@pytest.mark.parametrize("damage", [cut, slow(lose_data)])
@pytest.mark.parametrize("which", ["log", "quarantine"])
def test_silver_and_quarantine_have_every_row_once_after_a_power_cut(
    spark: Any,
    settings: Settings,
    stream: Contract,
    shop: Shop,
    next_rows: Next,
    which: str,
    damage: Callable[[list[Path]], None],
    torn_commits: int,
) -> None:
    tables = Tables.of(stream)
    table = getattr(tables, which)
    for _ in range(3):
        next_rows()
    before = ledger.latest(settings, tables.log)
    commits = newest_commits(settings, table, torn_commits)
    damage(commits)
    assert {name: len(versions) for name, versions in torn_tables(settings).items() if name == table} == {
        table: torn_commits
    }
    if damage is cut and which == "log":
        with pytest.raises(LedgerBroken, match=f"lockstep ledger repair {table}"):
            refine(spark, settings, stream, "run")
    said = repair(table)
    assert f"{table} ends with version" in said
    assert "take its rows again from bronze" in said
    assert table not in torn_tables(settings)
    assert "no commit is torn" in repair(table)

    entry = refine(spark, settings, stream, "run")
    assert entry
    assert before
    assert entry.seq == before.seq - torn_commits + 1, (
        "the number, and so the transaction id, of the first that is gone"
    )
    assert entry.ranges[0].topic == stream.topic
    assert entry.version > before.version, "whoever has seen the old version sees this one"
    assert refine(spark, settings, stream, "run") is None
    next_rows()
    assert sorted(offsets(settings, tables.log) + offsets(settings, tables.quarantine)) == sorted(shop.acknowledged)
    newest = ledger.latest(settings, tables.log)
    assert newest
    assert newest.totals == {"duplicates": 0, "markers": 0, "quarantined": 4, "silver": 4}


def test_rows_that_a_gate_has_seen_in_part_are_looked_at_again(
    spark: Any, settings: Settings, stream: Contract, next_rows: Next
) -> None:
    table = Tables.of(stream).log
    for _ in range(3):
        next_rows()
    seen = ledger.latest(settings, table)
    assert seen
    for commit in newest_commits(settings, table):
        cut([commit])
    repair(table)
    refine(spark, settings, stream, "run")
    again = pending(settings, table, seen.version)
    assert again
    assert again.rows == 2


@pytest.mark.parametrize("damage", [slow(cut), lose_data])
@pytest.mark.parametrize("which", ["log", "current"])
def test_a_captured_table_and_its_log_have_the_same_runs_after_a_power_cut(
    settings: Settings, source: Source, which: str, damage: Callable[[list[Path]], None]
) -> None:
    tables = Tables.of(source.contract)
    assert tables.current
    for number in range(4):
        source.insert(str(number), 10 * number + 10)
        source.insert("same", 10 * number + 15, kind=f"of run {number}")
        source.refine()
    damage(newest_commits(settings, getattr(tables, which)))
    repair(tables.current)
    assert silver_of_source(settings, tables) == {"0": "sale", "1": "sale", "same": "of run 1"}
    refine(source.spark, settings, source.contract, "run")
    everything = {str(number): "sale" for number in range(4)} | {"same": "of run 3"}
    assert silver_of_source(settings, tables) == everything
    assert offsets(settings, tables.log) == sorted(source.shop.acknowledged)
    source.insert("5", 100)
    source.refine()
    assert silver_of_source(settings, tables) == everything | {"5": "sale"}


def silver_of_source(settings: Settings, tables: Tables) -> dict[str, str]:
    assert tables.current
    rows = collect(settings, tables.current, "true", ["order_id", "kind"]).to_pylist()
    return {row["order_id"]: row["kind"] for row in rows}


@pytest.mark.parametrize("torn_commits", [1, slow(2)])
@pytest.mark.parametrize("damage", [cut, slow(lose_data)])
def test_gold_is_computed_again_after_a_power_cut(
    spark: Any,
    settings: Settings,
    stream: Contract,
    view: View,
    shop: Shop,
    damage: Callable[[list[Path]], None],
    torn_commits: int,
) -> None:
    table = gold_of(view)

    def next_minute(minute: int) -> None:
        shop.view(f"a{minute}", minute * 60 + 10)
        shop.view(f"b{minute}", 30)
        shop.flush()
        ingest(spark, settings, stream, "run")
        refine(spark, settings, stream, "run")
        roll_up(spark, settings, view, "run")

    for minute in range(4):
        next_minute(minute)
    damage(newest_commits(settings, table, torn_commits))
    if damage is cut:
        with pytest.raises(LedgerBroken, match=f"lockstep ledger repair {table}"):
            roll_up(spark, settings, view, "run")
    assert "computes its rows again from silver" in repair(table)
    assert roll_up(spark, settings, view, "run")
    assert roll_up(spark, settings, view, "run") is None
    next_minute(4)
    rows = collect(settings, table, "true", ["window_start", "views"]).to_pylist()
    found = sorted((row["window_start"].minute, row["views"]) for row in rows)
    assert found == [(0, 6), (1, 1), (2, 1), (3, 1), (4, 1)]


def test_the_archive_of_the_ledger_goes_back_with_a_log(
    spark: Any, settings: Settings, stream: Contract, next_rows: Next
) -> None:
    table = Tables.of(stream).log
    for _ in range(3):
        next_rows()

    def archived() -> list[int]:
        with archive.archiving(spark, settings, "run") as take:
            take(table)
        return [commit.record["seq"] for commit in archive.read(settings, table, "true")]

    assert archived() == [3, 2, 1]
    cut(newest_commits(settings, table))
    repair(table)
    refine(spark, settings, stream, "run")
    assert archived() == [2, 1]
    next_rows()
    assert archived() == [3, 2, 1]


def test_a_repair_that_dies_is_finished_by_the_next_one(
    spark: Any, settings: Settings, stream: Contract, shop: Shop, next_rows: Next, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables.of(stream)
    for _ in range(3):
        next_rows()
    cut(newest_commits(settings, tables.log))
    end = torn.end_before

    def dies(connection: Any, settings: Settings, table: str, versions: Sequence[int]) -> list[str]:
        if table == tables.log:
            raise ConnectionError("the power is cut again")
        return end(connection, settings, table, versions)

    with monkeypatch.context() as patch, pytest.raises(ConnectionError):
        patch.setattr(torn, "end_before", dies)
        torn.repair(spark, settings, tables.log, "an operator", "a power cut")
    repair(tables.log)
    refine(spark, settings, stream, "run")
    assert sorted(offsets(settings, tables.log) + offsets(settings, tables.quarantine)) == sorted(shop.acknowledged)


def test_a_log_is_left_alone_if_what_it_was_before_is_not_whole(
    settings: Settings, stream: Contract, next_rows: Next
) -> None:
    table = Tables.of(stream).log
    for _ in range(3):
        next_rows()
    oldest, _, newest = newest_commits(settings, table, 3)
    lose_data([oldest])
    cut([newest])
    before = sorted(path.name for path in newest.parent.iterdir())
    command = ["ledger", "repair", table, "--by", "an operator", "--reason", "a power cut"]
    refused = CliRunner().invoke(app, command).exception
    assert isinstance(refused, LedgerBroken)
    assert "Nothing was written" in str(refused)
    assert sorted(path.name for path in newest.parent.iterdir()) == before
