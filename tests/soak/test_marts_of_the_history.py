"""All 374 days of the real history, from Kafka to the marts of orders: what pandas finds in the original file, to the penny."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.retail_history import history

from lockstep.catalog import connect
from lockstep.marts.touched import MOST_DAYS, days_of, spans
from lockstep.settings import Settings

FIRST, AFTER = datetime(2010, 12, 1, tzinfo=UTC), datetime(2011, 12, 10, tzinfo=UTC)


@pytest.mark.timeout(3600)
def test_the_marts_of_the_whole_history_are_what_pandas_finds_and_stay_the_same(
    settings: Settings, tmp_path: Path
) -> None:
    def took(began: float) -> str:
        return f"{time.monotonic() - began:.0f} s"

    began = time.monotonic()
    with connect(settings, "soak") as spark, history(spark, settings, tmp_path / "project", FIRST, AFTER) as found:
        assert (len(found.raw), len(days_of((FIRST, AFTER)))) == (541_909, 374)
        print(f"541,909 lines in silver after {took(began)}")
        began = time.monotonic()
        found.build(AFTER - timedelta(days=1), AFTER)
        print(f"all days built in {took(began)}")
        assert found.differing() == []
        before, rows = found.digests(), {name: len(found.mart(name)) for name in ("daily_orders", "daily_customers")}
        began = time.monotonic()
        for span in spans(days_of((FIRST, AFTER))):
            found.build(*span)
        print(f"built again, {MOST_DAYS} days at a time, in {took(began)}: {rows}, {before}")
        assert found.digests() == before
        assert found.differing() == []
