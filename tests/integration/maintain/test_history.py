"""A log is kept for days, and what was before is in the archive: nothing is forgotten, and no step costs more from day to day."""

from pathlib import Path

import pytest
from tests.support.costs import costs
from tests.support.days import PARTITIONS, START, Days

from lockstep import lake, ledger
from lockstep.cli.ledger import problems
from lockstep.ledger import archive, history
from lockstep.maintain.run import MaintenanceFailed
from lockstep.replay.runs import runs_between, runs_of


@pytest.fixture
def days(settings, stream, view, tmp_path):
    """Days of four commits of each table, in a lake of their own whose logs keep two days."""
    short = {"lake": str(tmp_path / "lake"), "retain_hours": 0, "log_hours": 48}
    return Days(settings.model_copy(update=short), stream, view, commits=4, checkpoint_every=4)


def oldest_version(days, table):
    return min(commit.version for commit in lake.commits(days.settings, table))


def most_files_of_three(days):
    """By step, the most files of logs that it reads on the next three days: how many there are depends on the last checkpoint."""
    found = {}
    for _ in range(3):
        days.pass_one()
        for name, cost in costs(days).items():
            found[name] = max(cost.files, found.get(name, 0))
    return found


def test_a_week_is_remembered_by_logs_of_days_and_the_last_day_costs_no_more(days):
    while days.day < 3:
        days.pass_one()
    before, after = most_files_of_three(days), most_files_of_three(days)
    for name, files in after.items():
        # A checkpoint more or less, and the steps in which the newest commit is looked for.
        assert files <= 1.2 * before[name] + 12, f"{name}: {files} files of logs, {before[name]} three days before"
    tables = days.tables[:3]
    assert all(oldest_version(days, table) > 12 for table in tables)
    newest = ledger.latest(days.settings, days.bronze)
    assert problems(days.settings, days.contract) == (newest.seq, [])
    # The ledger is whole, wherever its entries are.
    entries = [ledger.entry(commit) for commit in history.recorded(days.settings, days.bronze, "true")]
    assert [entry.seq for entry in entries] == [*range(newest.seq, 0, -1)]
    assert list(ledger.problems(reversed(entries))) == []
    # A new view starts where silver began, and not where its log does.
    assert ledger.origin(days.settings, days.silver) == dict.fromkeys(range(PARTITIONS), 0)
    source = ledger.latest(days.settings, days.silver)
    assert {r.start for r in ledger.pending(days.settings, source, None, 1 << 62)} == {0}
    # The first run is found by its time and by its offsets.
    (by_time,) = runs_between(days.settings, days.silver, "_arrival", (START, START.replace(minute=1)))
    (by_offsets,) = runs_of(days.settings, days.bronze, "timestamp", [entries[-1].ranges[0]])
    assert (by_time.entry.seq, by_time.first) == (1, START)
    assert by_offsets.entry == entries[-1]


def test_a_log_keeps_what_cannot_be_archived(days):
    for _ in range(3):
        days.pass_one()
    # An entry in the middle is lost before it was archived.
    for _ in range(3):
        days.write(START)
    newest = ledger.latest(days.settings, days.bronze)
    (Path(lake.path(days.settings, days.bronze)) / f"_delta_log/{newest.version - 1:020d}.json").unlink()
    oldest, archived = oldest_version(days, days.bronze), archive.archived(days.settings, days.bronze)
    for _ in range(4):
        days.let_pass()
    with pytest.raises(MaintenanceFailed, match=f"{days.bronze}: .* follows entry") as failure:
        days.look_after()
    assert days.silver not in str(failure.value)
    assert archive.archived(days.settings, days.bronze) == archived
    assert oldest_version(days, days.bronze) <= archived.version + 1
    assert oldest_version(days, days.bronze) >= oldest
    assert archive.archived(days.settings, days.silver).seq == newest.seq
