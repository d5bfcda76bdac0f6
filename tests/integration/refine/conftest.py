"""Tests that say the same of slices that are refined with Spark and of those that are not."""

import pytest
from tests.integration.refine.engines import EITHER_WAY

from lockstep.lake import writes


@pytest.fixture(params=EITHER_WAY.values(), ids=[*EITHER_WAY])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writes, "SMALL_ROWS", request.param)
