"""A month of the real history, from Kafka to the marts of orders, is what pandas finds in the original file, to the penny.

All 374 days are in tests/soak/test_marts_of_the_history.py.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.marts import drop_marts
from tests.support.retail_history import history

from lockstep.settings import Settings

JANUARY, FEBRUARY = datetime(2011, 1, 1, tzinfo=UTC), datetime(2011, 2, 1, tzinfo=UTC)


@pytest.mark.slow
def test_a_month_of_the_real_orders_is_what_pandas_finds_and_is_the_same_when_built_again(
    spark: Any, settings: Settings, tmp_path: Path
) -> None:
    drop_marts(spark, settings)
    with history(spark, settings, tmp_path, JANUARY, FEBRUARY) as found:
        assert len(found.raw) == 35_147
        found.build(JANUARY, FEBRUARY)
        assert found.differing() == []
        before = found.digests()
        found.build(JANUARY, FEBRUARY)
        assert found.digests() == before
    drop_marts(spark, settings)
