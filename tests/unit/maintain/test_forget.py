"""What runs and live queries have found is not kept for ever."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lockstep import lake
from lockstep.lake.small_commits import SmallCommits
from lockstep.live.progress import COLUMNS
from lockstep.maintain.run import KEPT_AS_LONG_AS_RUNS, forget
from lockstep.quality.outcomes import TABLE as QUALITY
from lockstep.reconcile.notify import ALERTS, CORRECTIONS
from lockstep.reconcile.record import TABLE as RECONCILIATION

START = datetime(2026, 1, 1, tzinfo=UTC)
PROGRESS = "ops.live_progress"


@pytest.fixture
def progress(settings):
    """A row of each of ten days, and one of a query that never had a batch."""
    location = lake.path(settings, PROGRESS)
    for day in [*range(10), None]:
        at = None if day is None else START + timedelta(days=day)
        rows = pa.table({"query": [str(day)], "at": pa.array([at], pa.timestamp("us", "UTC"))})
        write_deltalake(location, rows, mode="append")
    return SmallCommits(settings, PROGRESS)


def test_rows_are_kept_as_long_as_runs_are(settings, progress):
    forget(settings, progress, PROGRESS, START + timedelta(days=7))
    rows = DeltaTable(lake.path(settings, PROGRESS)).to_pyarrow_table()["query"].to_pylist()
    assert sorted(rows) == ["7", "8", "9", "None"]


def test_where_nothing_is_old_there_is_no_commit(settings, progress):
    before = progress.version
    forget(settings, progress, PROGRESS, START)
    assert DeltaTable(lake.path(settings, PROGRESS)).version() == before


def test_each_table_has_its_column():
    tables = (QUALITY, RECONCILIATION, CORRECTIONS, ALERTS)
    columns = {PROGRESS: COLUMNS} | {table.name: table.columns for table in tables}
    assert KEPT_AS_LONG_AS_RUNS.keys() == columns.keys()
    assert all(columns[table][column] == "TIMESTAMP" for table, column in KEPT_AS_LONG_AS_RUNS.items())
