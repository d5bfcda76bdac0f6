"""A year in an hour: the price of a step does not know history. No Spark and no broker: PostgreSQL, and real commits.

``LOCKSTEP_SOAK_DAYS`` and ``LOCKSTEP_SOAK_COMMITS`` (of each table and day) make it shorter.
"""

import os
from dataclasses import replace

import pytest
from tests.support.days import Cost, Days, costs
from tests.support.ports import own_ports

from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.stack.stack import Stack

DAYS = int(os.environ.get("LOCKSTEP_SOAK_DAYS", "400"))
COMMITS = int(os.environ.get("LOCKSTEP_SOAK_COMMITS", "20"))
# Days. A log is as long as it will ever be: what it keeps, and at most a hundred commits until the next checkpoint.
FULL_LOG = 9 + 100 // COMMITS + 1
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
}
# How long the files of old versions are kept.
KEPT_DAYS = 7


@pytest.fixture
def settings(tmp_path_factory):
    """PostgreSQL alone."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        own_ports(patch, home)
        running = Stack(configuration.load())
        try:
            running.up(["postgres"])
            yield running.settings
        finally:
            running.reset()


@pytest.fixture
def days(settings, tmp_path):
    contract = replace(CONTRACTS["page_views"], name="page_views_of_a_year", topic="page_views_of_a_year")
    view = replace(VIEWS["page_views_per_minute"], name="per_minute_of_a_year", input=contract.name)
    CONTRACTS[contract.name], VIEWS[view.name] = contract, view
    own = settings.model_copy(update={"lake": str(tmp_path / "lake"), "retain_hours": 0})
    yield Days(own, contract, view, COMMITS)
    del CONTRACTS[contract.name], VIEWS[view.name]


def test_the_price_of_a_step_does_not_know_history(days, report):
    looked_at = {2, FULL_LOG, DAYS}
    seen: dict[int, dict[str, Cost]] = {}
    sizes: dict[int, tuple[int, int, int]] = {}
    while days.day < DAYS:
        days.pass_one()
        if days.day in looked_at:
            seen[days.day] = costs(days)
            sizes[days.day] = (days.bytes_on_disk(KEPT_DAYS), days.live_bytes(), days.inodes())
    _report(report, seen, sizes)
    last, full = seen[DAYS], seen[FULL_LOG]
    for name, cost in last.items():
        before = full[name] if name in OF_A_LOG else seen[2][name]
        said = f"{name}: {cost} on day {DAYS}, {before} before"
        # A log may have some commits more, until its next checkpoint.
        assert cost.files <= LIMIT * before.files + (20 if name in OF_A_LOG else 0), said
        assert cost.looked <= full[name].looked * 2, said
        assert cost.seconds <= LIMIT * before.seconds + 0.2, said
    on_disk, live, inodes = sizes[DAYS]
    assert on_disk <= 3 * live
    assert inodes <= 2 * sizes[FULL_LOG][2]


def _report(report, seen, sizes):
    days = sorted(seen)
    report(f"\n| a year, {COMMITS} commits of each table a day | " + " | ".join(f"day {day}" for day in days) + " |")
    report("|---|" + "---|" * len(days))
    for name in seen[days[-1]]:
        cells = (f"{cost.seconds * 1000:,.0f} ms, {cost.files:,} files" for cost in (seen[day][name] for day in days))
        report(f"| {name} | " + " | ".join(cells) + " |")
    for n, name in enumerate(("bytes on disk, with seven days of old files", "live bytes", "files and directories")):
        report(f"| {name} | " + " | ".join(f"{sizes[day][n]:,}" for day in days) + " |")
