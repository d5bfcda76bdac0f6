"""The marts' interval is of whole days in UTC, and the dbt project is known by a digest."""

import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.marts import build, dbt_project, parsed
from lockstep.settings import Settings

DAY = datetime(2026, 11, 20, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


@pytest.mark.parametrize(("start", "end"), [(DAY, DAY), (NEXT, DAY), (DAY, NEXT - timedelta(hours=3))])
def test_what_is_not_a_range_of_days_is_refused(start: datetime, end: datetime) -> None:
    with pytest.raises(ValueError, match="two midnights, the earlier first"):
        build.whole_days(start, end)


def test_days_are_days_in_utc_wherever_the_caller_is() -> None:
    here = timezone(timedelta(hours=2))
    assert build.whole_days(DAY.astimezone(here), NEXT.astimezone(here)) == ("2026-11-20", "2026-11-21")
    with pytest.raises(ValueError, match="whole days in UTC"):
        build.whole_days(datetime(2026, 11, 20, tzinfo=here), datetime(2026, 11, 21, tzinfo=here))


def test_dbts_variables_are_taken_back_and_those_of_other_threads_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_TEST_WAS", "before")
    monkeypatch.setenv("LOCKSTEP_TEST_OTHER", "before")
    with dbt_project.environment({"LOCKSTEP_TEST_WAS": "dbt", "LOCKSTEP_TEST_NEW": "dbt"}):
        assert (os.environ["LOCKSTEP_TEST_WAS"], os.environ["LOCKSTEP_TEST_NEW"]) == ("dbt", "dbt")
        os.environ["LOCKSTEP_TEST_OTHER"] = "by another thread"
    assert os.environ["LOCKSTEP_TEST_WAS"] == "before"
    assert "LOCKSTEP_TEST_NEW" not in os.environ
    assert os.environ["LOCKSTEP_TEST_OTHER"] == "by another thread"


def test_the_digest_changes_with_a_model_and_with_the_lake(tmp_path: Path) -> None:
    model = tmp_path / "dbt" / "model.sql"
    model.parent.mkdir()
    model.write_text("select 1")
    settings = Settings(project=tmp_path, home=tmp_path)
    first = dbt_project.project_digest(settings)
    assert first == dbt_project.project_digest(settings)
    assert first != dbt_project.project_digest(Settings(project=tmp_path, home=tmp_path / "elsewhere"))
    model.write_text("select 2")
    assert first != dbt_project.project_digest(settings)


def test_a_mart_of_a_captured_tables_changes_or_history_follows_its_current_rows() -> None:
    names = {"s.1": "users_history", "s.2": "orders_changes", "s.3": "page_views"}
    sources = {key: SimpleNamespace(source_name="silver", name=name) for key, name in names.items()}
    mart = SimpleNamespace(
        unique_id="m",
        resource_type=SimpleNamespace(value="model"),
        config=SimpleNamespace(materialized="incremental"),
        depends_on_nodes=[*names],
    )
    manifest: Any = SimpleNamespace(nodes={"m": mart}, sources=sources)
    assert parsed.sources_of(manifest) == ["silver.orders", "silver.page_views", "silver.users"]


@pytest.mark.parametrize(
    ("message", "lasting"),
    [
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved. SQLSTATE: 42703; line 5 pos 13;", True),
        ("[PARSE_SYNTAX_ERROR] Syntax error at or near 'selct'. SQLSTATE: 42601 (line 1, pos 0)", True),
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", True),
        ("Compilation Error in model daily_orders: This model has an enforced contract that failed.", True),
        # Of a server that has been restarted.
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `silver`.`orders` cannot be found. SQLSTATE: 42P01", False),
        ("[SCHEMA_NOT_FOUND] The schema `marts_built` cannot be found. SQLSTATE: 42704", False),
        ("<_MultiThreadedRendezvous of RPC that terminated with: status = StatusCode.UNAVAILABLE", False),
        ("[INVALID_HANDLE.SESSION_CLOSED] Session was closed. SQLSTATE: HY000", False),
    ],
)
def test_a_failure_lasts_if_only_a_correction_ends_it(message: str, *, lasting: bool) -> None:
    assert dbt_project.is_lasting(message) is lasting
