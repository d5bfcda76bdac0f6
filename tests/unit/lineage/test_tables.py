"""What the project's files say of its marts, without dbt."""

from pathlib import Path

import pytest

from lockstep.contracts import CONTRACTS, Contract
from lockstep.lineage import tables


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The models of a project of the test's own."""
    monkeypatch.setenv("LOCKSTEP_PROJECT", str(tmp_path))
    for folder in ("staging", "marts/daily"):
        (tmp_path / "dbt" / "models" / folder).mkdir(parents=True)
    return tmp_path / "dbt" / "models"


def test_a_mart_is_made_from_those_that_it_names_and_those_that_it_reads_through_other_models(models: Path) -> None:
    (models / "marts" / "daily" / "days.sql").write_text("select * from {{ source('silver', 'orders') }}")
    (models / "staging" / "between.sql").write_text("select * from {{ ref('days') }}")
    (models / "marts" / "weeks.sql").write_text('select * from {{ ref( "between" ) }}')
    (models / "marts" / "months.sql").write_text("select * from {{ ref('shop', 'weeks') }} join {{ ref('calendar') }}")
    assert tables.mart_references() == {"days": [], "months": ["weeks"], "weeks": ["days"]}


def test_the_topic_of_a_views_results_is_written_by_us_and_read_as_all_topics_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert tables.results() == []
    columns = {"window_start": "TIMESTAMP", "page": "STRING"}
    key = ("window_start", "page")
    stream = Contract("minutes", "results.minutes", "changes", columns, key, key, "window_start", view="per_minute")
    monkeypatch.setitem(CONTRACTS, "minutes", stream)
    assert tables.results() == ["kafka.results.minutes"]
    assert "kafka.results.minutes" in tables.topics("changes")


def test_models_that_name_each_other_end(models: Path) -> None:
    (models / "staging" / "a.sql").write_text("{{ ref('b') }}")
    (models / "staging" / "b.sql").write_text("{{ ref('a') }} {{ ref('mart') }}")
    (models / "marts" / "mart.sql").write_text("{{ ref('a') }}")
    assert tables.mart_references() == {"mart": []}


def test_a_project_without_marts_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_PROJECT", str(tmp_path))
    assert tables.mart_references() == {}
