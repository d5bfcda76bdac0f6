"""What unit tests share: settings with a home of their own."""

from pathlib import Path

import pytest
from tests.support.ops_records import OpsRecords

from lockstep.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def ops_records(monkeypatch: pytest.MonkeyPatch) -> OpsRecords:
    """The records of the ``ops.*`` tables: empty, and in memory."""
    return OpsRecords(monkeypatch)
