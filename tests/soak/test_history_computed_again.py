"""The whole real history in a platform of its own, whose marts stay the same when every day is computed again as users do it.

The last 31 days are a backfill from the form in Airflow's UI, the rest is one replay of silver and gold.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile

import pandas as pd
import pytest
from deltalake import DeltaTable
from playwright.sync_api import Browser
from rich.console import Console
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.browser.conftest import browser, logged_in
from tests.browser.forms import Backfill
from tests.e2e.conftest import reset
from tests.support import retail_oracle
from tests.support.digest import digest
from tests.support.ports import SHORT_LIVED, own_ports

from lockstep import lake
from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.settings import Settings
from shop.demo import facts
from shop.demo.run import Demo
from shop.simulate.retail import DATA

__all__ = ["browser"]

DAYS, BY_BACKFILL = 374, 31
# Two that read the orders, so that a replay of silver has views to follow. The others would take most of the time.
VIEWS = "orders_in_eight_minutes,orders_with_customer"
# Each topic has its records, but few of them: the marts of the traffic are not what is compared here.
SIMULATE = ["simulate", "--days", str(DAYS), "--bulk", "--sessions-per-order", "1", "--sensors", "0"]
MARTS = ("marts.daily_orders", "marts.daily_customers")
REPLAY = """
reason: the whole history again
from: {start:%FT%TZ}
to: {end:%FT%TZ}
topics: [orders, order_lines]
layers: [silver, gold]
approve: by_rule
max_changed_percent: 0
"""


@pytest.mark.timeout(3 * 3600)
def test_every_day_of_the_history_is_computed_again_and_the_marts_stay_the_same(
    tmp_path, browser: Browser, report: Callable[[str], None]
):
    def took(what: str) -> None:
        nonlocal began
        report(f"- {what}: {time.monotonic() - began:.0f} s")
        began = time.monotonic()

    began, today = time.monotonic(), datetime.now(UTC)
    report("\n## The whole history, computed again\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCKSTEP_VIEWS", VIEWS)
        own_ports(patch, tmp_path / "home", java=SHORT_LIVED)
        demo = Demo(configuration.load(), Console(force_terminal=False, width=140), DAYS)
        try:
            demo.stack.up()
            settings = demo.stack.settings  # with the passwords that the first start generates
            subprocess.run([sys.executable, "-m", "lockstep.cli", *SIMULATE], check=True)
            took("started and simulated")
            demo.run()
            took("all layers have everything, and all marts are built")
            expected = retail_oracle.daily_orders(DATA, DAYS, today.date())
            found = daily_orders(settings)
            pd.testing.assert_frame_equal(found[expected.columns.tolist()], expected, check_dtype=False)
            before = digests(settings)
            end = datetime.combine(expected["day"].max(), datetime.min.time(), UTC) + timedelta(days=1)
            report(f"- {len(expected):,} rows of `daily_orders` are those of pandas: {before}")

            middle = end - timedelta(days=BY_BACKFILL)
            built = versions(settings)
            form = Backfill(logged_in(browser, settings), settings, "rollup_daily")
            form.pick("From", middle)
            form.pick("To", end - timedelta(days=1))
            form.reprocess("All Runs")
            form.at_once(2)
            form.run(BY_BACKFILL, minutes=60)
            took(f"{BY_BACKFILL} days by a backfill from Airflow's UI")
            assert digests(settings) == before
            # A day without orders, such as each Saturday, makes no commit.
            ordered = {day for day in expected["day"] if day >= middle.date()}
            for mart, version in zip(MARTS, built, strict=True):
                assert ordered <= days_built(settings, mart, after=version)

            built = versions(settings)
            request = tmp_path / "replay.yaml"
            request.write_text(REPLAY.format(start=end - timedelta(days=DAYS), end=middle))
            subprocess.run([sys.executable, "-m", "lockstep.cli", "replay", "run", str(request)], check=True)
            took(f"{DAYS - BY_BACKFILL} days by one replay")
            patiently = Retrying(
                stop=stop_after_delay(3600),
                wait=wait_fixed(5),
                retry=retry_if_result(lambda now: not (now and min(versions(settings)) > min(built))),
            )
            patiently(lambda: facts.marts_built(settings).holds)
            took("the marts of these days")
            assert digests(settings) == before
        finally:
            reset(demo.stack)


def daily_orders(settings: Settings) -> pd.DataFrame:
    """The mart as readers see it."""
    with connect(settings, "soak") as spark:
        rows = spark.table("marts.daily_orders").toPandas()
    return rows.astype({"orders": int}).sort_values(["day", "country"], ignore_index=True)


def digests(settings: Settings) -> list[str]:
    return [digest(settings, mart) for mart in MARTS]


def days_built(settings: Settings, mart: str, after: int) -> set[date]:
    """The days of a mart that were built after a version, each by a commit of its own."""
    commits = takewhile(lambda commit: commit.version > after, lake.commits(settings, mart))
    return {date.fromisoformat(commit.record["interval"][0]) for commit in commits if commit.record}


def versions(settings: Settings) -> list[int]:
    """How many commits the tables of the marts have."""
    return [DeltaTable(lake.path(settings, mart)).version() for mart in MARTS]
