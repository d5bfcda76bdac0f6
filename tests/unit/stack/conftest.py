"""Settings of a home of their own."""

from pathlib import Path

import pytest

from lockstep.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("LOCKSTEP_LAKE", "LOCKSTEP_KAFKA", "LOCKSTEP_SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    return Settings(home=tmp_path / "home", cache=tmp_path / "cache")
