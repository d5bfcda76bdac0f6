"""Suites are files that a person reviews; a wrong one is refused with the file's name."""

from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT

from lockstep.quality import suites
from lockstep.settings import Settings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The place for suites, inside another project."""
    (tmp_path / "expectations" / "silver").mkdir(parents=True)
    return tmp_path / "expectations"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of that project."""
    return Settings(project=tmp_path)


def test_a_table_without_a_suite_is_refused(root: Path, settings: Settings) -> None:
    with pytest.raises(suites.SuiteMissing, match=r"silver\.searches has no suite: write expectations/silver/searches"):
        suites.load(settings, "silver.searches")


def test_a_suite_that_is_not_json_is_refused(root: Path, settings: Settings) -> None:
    (root / "silver" / "searches.json").write_text("{")
    with pytest.raises(suites.SuiteMissing, match="is not JSON"):
        suites.load(settings, "silver.searches")


def test_a_suite_of_another_table_is_refused(root: Path, settings: Settings) -> None:
    (root / "silver" / "searches.json").write_text('{"name": "silver.clicks", "expectations": [1]}')
    with pytest.raises(suites.SuiteMissing, match=r"must have the name 'silver\.searches'"):
        suites.load(settings, "silver.searches")


def test_a_suite_that_expects_nothing_is_refused(root: Path, settings: Settings) -> None:
    (root / "silver" / "searches.json").write_text('{"name": "silver.searches", "expectations": []}')
    with pytest.raises(suites.SuiteMissing, match="at least one expectation"):
        suites.load(settings, "silver.searches")


def test_every_file_of_the_project_is_a_suite() -> None:
    assert (CHECKOUT / "expectations" / "silver" / "orders.json").exists()
    ours = Settings()
    assert all(suites.load(ours, table)["name"] == table for table in suites.gated(ours))


def test_the_personal_columns_are_those_of_the_contract() -> None:
    assert suites.pii_columns("silver.users") == {"name", "email"}
    assert suites.pii_columns("silver.orders") == frozenset()
    assert suites.pii_columns("gold.page_views_per_minute") == frozenset()
