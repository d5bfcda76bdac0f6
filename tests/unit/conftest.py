"""What unit tests share: settings with a home of their own."""

from pathlib import Path

import pytest

from lockstep.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)
