"""Whether a table is late: by the commits of its source that it has not taken, and by nothing else."""

from datetime import datetime
from pathlib import Path

import pytest
from tests.support.commits import ledger_record, ranges, write_commit
from tests.support.ports import own_ports
from tests.support.records import START

from lockstep.ledger.late import is_late
from lockstep.settings import Settings

SOURCE = "silver.page_views"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    own_ports(monkeypatch, tmp_path)
    made = Settings()
    for version, (low, high) in enumerate([(0, 10), (10, 20), (20, 20)], start=1):
        at = int(START.timestamp() * 1000) + 60_000 * version
        write_commit(made, SOURCE, version, ledger_record(ranges({0: (low, high)}), seq=version), timestamp=at)
    return made


def minute(number: int) -> datetime:
    return datetime.fromtimestamp(START.timestamp() + 60 * number, START.tzinfo)


@pytest.mark.parametrize(
    ("taken", "limit", "late"),
    [
        (20, 9, False),  # all is taken, however old it is; an entry without offsets takes nothing
        (10, 2, False),  # what is not taken came after the limit
        (10, 3, True),
        (0, 2, True),
        (0, 1, False),
    ],
)
def test_a_table_is_late_once_what_it_has_not_taken_is_older_than_the_limit(
    settings: Settings, taken: int, limit: int, late: bool
) -> None:
    assert is_late(settings, SOURCE, {0: taken}, minute(limit)) is late


def test_a_source_that_has_nothing_makes_nobody_late(settings: Settings) -> None:
    assert not is_late(settings, "silver.clicks", {}, minute(9))
