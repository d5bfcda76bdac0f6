"""`lockstep ledger verify` names what is broken, and its exit code is 1 then."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.support.commits import ledger_record, ranges, write_commit
from typer.testing import CliRunner

from lockstep.cli.main import app
from lockstep.contracts import Contract
from lockstep.definition.tables import bronze_of
from lockstep.ingest.bronze import ingest
from lockstep.settings import Settings


def verify(stream: Contract) -> Result:
    return CliRunner().invoke(app, ["ledger", "verify", stream.name])


def lines(result: Result, word: str) -> list[str]:
    return [line.removeprefix(word).strip() for line in result.output.splitlines() if line.startswith(word)]


@pytest.fixture
def write(settings: Settings, stream: Contract, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Write a commit of the stream's bronze table, in a lake that only this test has."""
    monkeypatch.setenv("LOCKSTEP_LAKE", str(tmp_path))
    own = settings.model_copy(update={"lake": str(tmp_path)})

    def commit(version: int, start: int, end: int) -> None:
        record = ledger_record(ranges({0: (start, end)}, stream.topic), seq=version)
        write_commit(own, bronze_of(stream), version, record, rows=end - start)

    return commit


def test_a_gap_in_a_ledger_is_named(write: Callable[..., None], stream: Contract) -> None:
    write(1, 0, 10)
    write(2, 12, 20)
    result = verify(stream)
    assert result.exit_code == 1
    assert any("entry 2" in line and "misses offsets [10, 12)" in line for line in lines(result, "BROKEN")), (
        result.output
    )
    assert not any("entries" in line for line in lines(result, "whole"))


def test_a_delta_log_without_one_of_its_commits_is_named_and_counted_once(
    write: Callable[..., None], stream: Contract
) -> None:
    write(1, 0, 10)
    write(3, 10, 20)
    result = verify(stream)
    assert result.exit_code == 1
    findings = [line for line in lines(result, "BROKEN") if line.startswith(f"{bronze_of(stream)}: ")]
    assert any("version 2 is missing: a commit in the middle is gone" in line for line in findings), result.output
    assert len(findings) > 1, "the log of a table can have several problems"
    assert "0 of 1 Delta logs" in lines(result, "whole")


def test_a_whole_ledger_has_no_problem(spark: Any, settings: Settings, stream: Contract, shop: Any) -> None:
    shop.view("e1", 1)
    shop.flush()
    assert ingest(spark, settings, stream, "run")
    result = verify(stream)
    assert (result.exit_code, lines(result, "BROKEN")) == (0, []), result.output
    assert lines(result, "whole") == [f"{stream.name}: 1 entries", "1 of 1 Delta logs"]
