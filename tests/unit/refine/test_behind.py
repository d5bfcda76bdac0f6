"""Whether silver is behind bronze, as the logs of both say."""

import pytest
from tests.support.commits import ledger_record, ranges, write_commit
from tests.support.torn import tear

from lockstep.contracts import CONTRACTS
from lockstep.refine.silver import behind
from lockstep.settings import Settings

PAGES = CONTRACTS["page_views"]


@pytest.fixture
def even(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silver has what bronze has."""
    record = ledger_record(ranges({0: (0, 10)}))
    monkeypatch.setattr("lockstep.refine.silver.code_version", lambda: record["code_version"])
    for table in ("bronze.page_views", "silver.page_views"):
        write_commit(settings, table, 1, record, rows=10)


def test_silver_is_behind_once_bronze_has_more(settings: Settings, even: None) -> None:
    assert not behind(settings, PAGES)
    write_commit(settings, "bronze.page_views", 2, ledger_record(ranges({0: (10, 12)}), seq=2), rows=2)
    assert behind(settings, PAGES)


@pytest.mark.parametrize("table", ["bronze.page_views", "silver.page_views"])
def test_a_torn_log_counts_as_behind_so_that_its_own_refine_names_it(
    settings: Settings, even: None, table: str
) -> None:
    tear(settings, table)
    assert behind(settings, PAGES)
