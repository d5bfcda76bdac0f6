"""The log of a table loses its oldest files, and nothing that a reader of a later version needs."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lockstep import lake

TABLE = "bronze.orders"
LONG_AGO = time.time() - 9 * 86_400
CUT_OFF = datetime.now(UTC) - timedelta(days=8)


@pytest.fixture
def log(settings):
    """Thirty commits, and a checkpoint at 9, 19 and 29. Those up to 24 are old, and have a checksum as Spark's have."""
    table = lake.path(settings, TABLE)
    properties = {"delta.checkpointInterval": "10", "delta.enableExpiredLogCleanup": "false"}
    for n in range(30):
        write_deltalake(table, pa.table({"n": [n]}), mode="append", configuration=properties if n == 0 else None)
    directory = Path(table) / "_delta_log"
    for version in range(25):
        (directory / f"{version:020d}.crc").write_text("{}")
        (directory / f".{version:020d}.json.crc").write_text("")
    for file in directory.iterdir():
        if file.name.lstrip(".")[:20].isdigit() and int(file.name.lstrip(".")[:20]) < 25:
            os.utime(file, (LONG_AGO, LONG_AGO))
    return directory


def versions(log):
    return sorted({int(file.name.lstrip(".")[:20]) for file in log.iterdir() if file.name.lstrip(".")[:20].isdigit()})


def test_old_versions_before_a_checkpoint_go_with_all_of_their_files(settings, log):
    assert lake.trim(settings, TABLE, until=29, before=CUT_OFF) == 19 * 3 + 1
    assert versions(log) == [*range(19, 30)]
    table = lake.path(settings, TABLE)
    for version in (19, 24, 29):
        assert DeltaTable(table, version=version).to_pyarrow_table().num_rows == version + 1
    assert [commit.version for commit in lake.commits(settings, TABLE)] == [*range(29, 18, -1)]


@pytest.mark.parametrize(("until", "first"), [(19, 19), (18, 9), (8, 0), (-1, 0)])
def test_nothing_that_is_still_needed_goes(settings, log, until, first):
    lake.trim(settings, TABLE, until, CUT_OFF)
    assert versions(log)[0] == first


def test_young_versions_stay(settings, log):
    lake.trim(settings, TABLE, 29, CUT_OFF - timedelta(days=2))
    assert versions(log) == [*range(30)]


def test_nothing_goes_if_the_checkpoint_cannot_be_read(settings, log):
    (log / f"{19:020d}.checkpoint.parquet").write_text("torn")
    os.utime(log / f"{19:020d}.checkpoint.parquet", (LONG_AGO, LONG_AGO))
    with pytest.raises(pa.ArrowInvalid):
        lake.trim(settings, TABLE, 29, CUT_OFF)
    assert versions(log) == [*range(30)]


def test_a_table_without_a_log_has_nothing_to_lose(settings):
    assert lake.trim(settings, "bronze.none", 9, CUT_OFF) == 0
