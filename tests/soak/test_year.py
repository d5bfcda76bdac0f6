"""A year in an hour: the price of a step does not know history.

Each day has real commits by the platform's writers, and its housekeeping. On three days the real steps run too, with Spark.
``LOCKSTEP_SOAK_DAYS`` and ``LOCKSTEP_SOAK_COMMITS`` (of each table and day) make it shorter.
"""

import os
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.costs import Cost, costs, measured
from tests.support.ports import FLOW, started
from tests.support.real_days import RealDays
from tests.support.real_steps import real_costs

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS

DAYS = int(os.environ.get("LOCKSTEP_SOAK_DAYS", "400"))
COMMITS = int(os.environ.get("LOCKSTEP_SOAK_COMMITS", "6"))
# Days. A log is as long as it will ever be: what it keeps, and at most a hundred commits until the next checkpoint.
FULL_LOG = min(9 + 100 // COMMITS + 1, DAYS // 2)
# Of the cost on the second day, and on the first day with a full log.
LIMIT = 1.2
# These read the log, which has days.
OF_A_LOG = {
    "ledger verify",
    "Delta logs verified",
    "housekeeping",
    "plan of a recent replay",
    "plan of a replay of the first day",
    "times at a position",
    "replay of a recent interval",
    "replay of the first day",
}
# How long the files of old versions are kept.
KEPT_DAYS = 7
OF_VIEWS = ("page_views_per_minute", "recently_viewed")


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """PostgreSQL, Kafka and Spark, for a view with windows and one with machines."""
    monkeypatch.setenv("LOCKSTEP_VIEWS", ",".join(OF_VIEWS))
    with started(tmp_path / "home") as running:
        yield running


@pytest.fixture
def days(stack):
    windows, keyed = (VIEWS[name] for name in OF_VIEWS)
    settings = stack.settings.model_copy(update={"retain_hours": 0})
    # Kafka refuses records from the future.
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    start = today - timedelta(days=DAYS + 1)
    found = RealDays(settings, CONTRACTS["page_views"], windows, COMMITS, start=start, keyed=keyed)
    yield found
    found.disconnect()


@pytest.mark.timeout(5400)
def test_the_price_of_a_step_does_not_know_history(stack, days, report):
    looked_at = {2, FULL_LOG, DAYS}
    seen: dict[int, dict[str, Cost]] = {}
    sizes: dict[int, tuple[int, int, int]] = {}
    try:
        while days.day < DAYS:
            days.pass_one()
            if days.day in looked_at:
                sizes[days.day] = (days.bytes_on_disk(KEPT_DAYS), days.live_bytes(), days.inodes())
                seen[days.day] = _started_again(stack, days) | costs(days)
    finally:
        _report(report, seen, sizes)
    last, full = seen[DAYS], seen[FULL_LOG]
    grown = []
    for name, cost in last.items():
        before = full[name] if name in OF_A_LOG else seen[2][name]
        # A log may have some commits more, until its next checkpoint.
        more = 20 if name in OF_A_LOG else 0
        if (
            cost.files > LIMIT * before.files + more
            or cost.looked > full[name].looked * 2
            or (cost.cpu or cost.seconds) > LIMIT * (before.cpu or before.seconds) + 0.2
        ):
            grown.append(f"{name}: {cost} on day {DAYS}, {before} before")
    assert grown == []
    on_disk, live, inodes = sizes[DAYS]
    assert on_disk <= 3 * live
    assert inodes <= 2 * sizes[FULL_LOG][2]


def _started_again(stack, days):
    """What a start costs, and then each real step."""
    found = {"start of PostgreSQL, Kafka and Spark": Cost(), "first connection": Cost()}
    days.disconnect()
    stack.down()
    with measured(found["start of PostgreSQL, Kafka and Spark"]):
        stack.up(FLOW)
    with measured(found["first connection"]):
        days.connect()
    return found | real_costs(days)


def _cell(cost):
    return f"{cost.seconds * 1000:,.0f} ms{f' ({cost.cpu:.1f} s of CPU)' if cost.cpu else ''}, {cost.files:,} files"


def _report(report, seen, sizes):
    days = sorted(seen)
    report(f"\n| a year, {COMMITS} commits of each table a day | " + " | ".join(f"day {day}" for day in days) + " |")
    report("|---|" + "---|" * len(days))
    for name in seen[days[-1]] if days else ():
        report(f"| {name} | " + " | ".join(_cell(seen[day][name]) for day in days) + " |")
    for n, name in enumerate(("bytes on disk, with seven days of old files", "live bytes", "files and directories")):
        report(f"| {name} | " + " | ".join(f"{sizes[day][n]:,}" for day in days) + " |")
