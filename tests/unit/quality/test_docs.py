"""The data docs: what a table means, what is expected of it, and what its gates have found; as files that need no network."""

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.paths import CHECKOUT

from lockstep import dictionary
from lockstep.quality import docs, history
from lockstep.quality.checks import Check
from lockstep.quality.outcomes import Outcome
from lockstep.settings import Settings
from lockstep.suite_files import Severity

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a project with one suite."""
    suite = Path("expectations/silver/users.json")
    (tmp_path / suite).parent.mkdir(parents=True)
    shutil.copy(CHECKOUT / suite, tmp_path / suite)
    return Settings(project=tmp_path, home=tmp_path / "home")


def outcome(minute: int = 0, wrong: int = 0, severity: Severity = Severity.FAIL) -> Outcome:
    reason = f"unique: {wrong} of 100 rows do not hold, such as ['</script>']" if wrong else ""
    check = Check("unique(column='user_id')", ("user_id",), severity, not wrong, None, wrong, 100, reason)
    at = NOON + timedelta(minutes=minute)
    return Outcome("silver.users", "silver.users", (check,), 100, "_offset >= 7", 3, at)


def shown(page: Path) -> dict[str, Any]:
    """The data of a page."""
    [embedded] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return dict(json.loads(embedded))


def test_the_page_of_a_table_says_what_it_and_its_columns_mean(settings: Settings) -> None:
    docs.rebuild(settings, [])
    page = shown(docs.page_of(settings, "silver.users"))
    said = dictionary.texts("silver.users")
    assert said
    assert page["description"] == said.description
    assert page["columns"]["age"] == said.columns["age"]
    assert "so no address may show" in page["notes"]
    assert {"text": "expect_column_values_to_be_unique(column='user_id')", "severity": "fail"} in page["suite"]
    assert {one["severity"] for one in page["suite"]} == {"fail", "warn"}


def test_each_run_is_shown_with_its_time_slice_and_what_was_observed(settings: Settings) -> None:
    docs.add(settings, [outcome()], "run-1")
    docs.add(settings, [outcome(5, wrong=2)], "run-2")
    page = shown(docs.page_of(settings, "silver.users"))
    assert [(run["run"], run["at"], run["success"]) for run in page["runs"]] == [
        ("run-2", "2026-11-20T12:05:00Z", False),
        ("run-1", "2026-11-20T12:00:00Z", True),
    ]
    newest = page["runs"][0]
    assert (newest["slice"], newest["rows"]) == ("_offset >= 7", 100)
    assert newest["checks"][0][:5] == [0, False, 2, 100, None]
    assert page["days"] == {"2026-11-20": {"runs": 2, "rows": 200, "shut": 1, "warned": 0}}


def test_the_index_has_the_newest_run_and_the_days_of_each_table(settings: Settings) -> None:
    docs.add(settings, [outcome(wrong=2)], "run-1")
    [table] = shown(settings.home / "data_docs" / "index.html")["tables"]
    assert (table["table"], table["newest"]["success"]) == ("silver.users", False)
    assert table["failed"][0].startswith("unique: 2 of 100")
    assert list(table["days"]) == ["2026-11-20"]


def test_the_index_leads_to_the_pages_of_dbt_once_they_are_there(settings: Settings) -> None:
    index, of_dbt = settings.home / "data_docs" / "index.html", settings.home / "dbt_docs" / "index.html"
    docs.add(settings, [outcome()], "run-1")
    assert shown(index)["dbt"] is False
    of_dbt.parent.mkdir()
    of_dbt.touch()
    docs.add(settings, [outcome()], "run-2")
    assert shown(index)["dbt"] is True


def test_a_page_asks_for_nothing_from_elsewhere_and_no_value_ends_its_script(settings: Settings) -> None:
    docs.add(settings, [outcome(wrong=2)], "run-1")
    for page in (docs.page_of(settings, "silver.users"), settings.home / "data_docs" / "index.html"):
        text = page.read_text()
        assert not re.search(r"(src|href)=[\"']|@import|url\(", text), "styles and scripts are in the page"
        assert set(re.findall(r"https?://[^\s\"'`]+", text)) <= {"http://www.w3.org/2000/svg"}
        assert "['</script>']" not in text
    assert "</script>" in shown(docs.page_of(settings, "silver.users"))["runs"][0]["checks"][0][5]


def test_a_gate_that_is_added_twice_is_one_run(settings: Settings) -> None:
    docs.add(settings, [outcome()], "run-1")
    docs.add(settings, [outcome()], "run-1")
    assert len(shown(docs.page_of(settings, "silver.users"))["runs"]) == 1


def test_what_a_page_keeps_has_a_bound_and_what_went_wrong_is_kept_longest() -> None:
    found = [(outcome(n, wrong=1 if n % 10 == 0 else 0), f"run-{n}") for n in range(3_000)]
    kept = history.with_outcomes(history.empty("silver.users"), found)
    assert len(kept["runs"]) == history.NEWEST + history.NOT_IN_ORDER
    assert [run["run"] for run in kept["runs"][:2]] == ["run-2999", "run-2998"]
    assert all(not run["success"] for run in kept["runs"][history.NEWEST :])
    assert sum(day["runs"] for day in kept["days"].values()) == 3_000, "the sums by day have all of them"
    assert len(json.dumps(kept)) < 200_000


def test_the_pages_can_be_made_again_from_what_ops_quality_has(settings: Settings) -> None:
    docs.add(settings, [outcome(n, wrong=n % 2) for n in range(1)], "run-0")
    docs.add(settings, [outcome(9, wrong=1, severity=Severity.WARN)], "run-9")
    before = shown(docs.page_of(settings, "silver.users"))
    shutil.rmtree(settings.home / "data_docs")
    docs.rebuild(settings, [(outcome(9, wrong=1, severity=Severity.WARN), "run-9"), (outcome(), "run-0")])
    after = shown(docs.page_of(settings, "silver.users"))
    assert sorted(run["run"] for run in after["runs"]) == ["run-0", "run-9"]
    assert after["days"] == before["days"]


def test_pages_that_cannot_be_written_fail_no_gate(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    (settings.home).mkdir()
    (settings.home / "data_docs").write_text("a file in the place of the folder")
    docs.add(settings, [outcome()], "run-1")
    assert "`lockstep quality docs` writes them again" in caplog.text
