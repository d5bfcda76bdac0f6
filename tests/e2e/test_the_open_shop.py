"""The shop stays open after the demo, and can be opened again: new rows come to both layers.

It runs after the commands of the README, which have made the demo a second time, and stopped everything at the end.
"""

from datetime import UTC, datetime

import pandas as pd
import pytest
from deltalake import DeltaTable
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lockstep import lake


@pytest.mark.slow
def test_it_closes_with_everything_else_and_brings_rows_to_both_layers_once_it_is_open_again(demo):
    assert (demo.settings.home / "logs" / "shop.log").stat().st_size > 0, "the second demo left it open"
    assert demo.stack.pid("shop") is None

    demo.stack.up()
    assert "shop" not in demo.stack.health(), "it opens on demand"
    demo.stack.up(["shop"])
    opened = datetime.now(UTC)
    eventually = Retrying(
        stop=stop_after_delay(600), wait=wait_fixed(2), retry=retry_if_exception_type(AssertionError), reraise=True
    )

    def arrived(layer: str) -> None:
        rows = DeltaTable(lake.path(demo.settings, f"{layer}.page_views_per_minute")).to_pandas()
        newest = pd.to_datetime(rows["window_start"], utc=True).max()
        assert newest > opened, f"{layer} ends at {newest}"

    for layer in ("live", "gold"):
        eventually(arrived, layer)
    assert demo.stack.health()["shop"].healthy
    demo.stack.down(["shop"])
    assert demo.stack.pid("shop") is None
    assert all(health.healthy for health in demo.stack.health().values()), "the others go on"
