"""A year in an hour: the price of a step does not know history.

Each day has real commits by the platform's writers, and its housekeeping. On three days the real steps run too, with Spark.
``LOCKSTEP_SOAK_DAYS`` and ``LOCKSTEP_SOAK_COMMITS`` (of each table and day) make it shorter.
"""

import os
import statistics
import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.costs import Cost, costs, measured
from tests.support.ports import FLOW, started
from tests.support.real_days import RealDays
from tests.support.real_steps import cpu_of_all, real_costs

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS

DAYS = int(os.environ.get("LOCKSTEP_SOAK_DAYS", "400"))
COMMITS = int(os.environ.get("LOCKSTEP_SOAK_COMMITS", "6"))
# Days. From then on a log is as long as it will ever be, but for its place between two checkpoints, which is that of the last
# day; and the views' lookback is full.
CHECKPOINT_EVERY = 100
FULL_LOG = DAYS - (DAYS - 40) * COMMITS // CHECKPOINT_EVERY * CHECKPOINT_EVERY // COMMITS if DAYS > 80 else DAYS // 2
# Days. Compaction rewrites more on some days than on others, as a counter carries.
MONTH = 30
# Of the cost on the second day, and on the first day with a full log.
LIMIT = 1.2
# What reads no log, and no rows of earlier days.
OF_NO_LOG = {"ingest", "refine", "roll_up of machines", "status", "newest entry of three tables", "ledger show"}
# A step that reads each commit of one log, and nothing else.
OF_EACH_COMMIT = "times at a position"
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
                seen[days.day]["housekeeping"].cpu = statistics.median(days.housekeeping[-MONTH:])
    finally:
        _report(report, seen, sizes)
    last, full = seen[DAYS], seen[FULL_LOG]
    grown = []
    # What reads a log reads each of its commits. How many it has depends on where its last checkpoint is.
    longer = max(1.0, last[OF_EACH_COMMIT].files / full[OF_EACH_COMMIT].files)
    assert last[OF_EACH_COMMIT].files <= 2 * CHECKPOINT_EVERY
    for name, cost in last.items():
        then = 2 if name in OF_NO_LOG else FULL_LOG
        before = seen[then][name]
        if (
            cost.files > LIMIT * before.files * (1.0 if name in OF_NO_LOG else longer)
            or cost.looked > full[name].looked * 2
            or cost.cpu > LIMIT * before.cpu + 0.2
        ):
            grown.append(f"{name}: {cost} on day {DAYS}, {before} before")
    assert not grown, "\n".join(grown)
    on_disk, live, inodes = sizes[DAYS]
    assert on_disk <= 3 * live
    assert inodes <= 2 * sizes[FULL_LOG][2]


def _started_again(stack, days):
    """What a start costs, and then each real step."""
    start, first = Cost(), Cost()
    days.disconnect()
    stack.down()
    before = time.process_time()
    with measured(start):
        stack.up(FLOW)
    start.cpu = up = cpu_of_all(stack.settings) - before
    with measured(first):
        days.connect()
    first.cpu = cpu_of_all(stack.settings) - before - up
    return {"start of PostgreSQL, Kafka and Spark": start, "first connection": first} | real_costs(days)


def _cell(cost):
    return f"{cost.seconds * 1000:,.0f} ms ({cost.cpu:.2f} s of CPU), {cost.files:,} files"


def _report(report, seen, sizes):
    days = sorted(seen)
    report(f"\n| a year, {COMMITS} commits of each table a day | " + " | ".join(f"day {day}" for day in days) + " |")
    report("|---|" + "---|" * len(days))
    for name in seen[days[-1]] if days else ():
        report(f"| {name} | " + " | ".join(_cell(seen[day][name]) for day in days) + " |")
    for n, name in enumerate(("bytes on disk, with seven days of old files", "live bytes", "files and directories")):
        report(f"| {name} | " + " | ".join(f"{sizes[day][n]:,}" for day in days) + " |")
