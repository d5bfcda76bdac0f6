"""A mart of a captured table, for the tests of what is built when, and of what readers see."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.marts import Orders, orders_of

from lockstep.settings import Settings


@pytest.fixture
def orders(spark: Any, settings: Settings, tmp_path: Path) -> Iterator[Orders]:
    with orders_of(spark, settings, tmp_path) as found:
        yield found
