"""Spark compacts a table's small files, and leaves a file alone that is large enough, as compaction without Spark does."""

import os
import uuid

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep import lake
from lockstep.lake.small_commits import SMALL_FILE, SmallCommits
from lockstep.maintain.compaction import compact

MEGABYTE = 1 << 20


@pytest.fixture
def table(settings):
    """A table with one file that is large enough, and 20 small ones."""
    name = f"staging.t{uuid.uuid4().hex[:8]}"
    for rows, size in [(SMALL_FILE // MEGABYTE * 3 // 4, MEGABYTE), *[(1, 1000)] * 20]:
        values = pa.table({"bytes": pa.array([os.urandom(size) for _ in range(rows)], pa.binary())})
        write_deltalake(lake.path(settings, name), values, mode="append")
    return name


def files(settings, table):
    return [size for sizes in SmallCommits(settings, table).file_sizes().values() for size in sizes]


def test_spark_takes_young_files_once(spark, settings, table):
    large = max(files(settings, table))
    compact(spark, settings, table, SmallCommits(settings, table), by_spark=True)
    after = sorted(files(settings, table))
    assert len(after) == 2
    assert after[1] == large
    assert after[0] < MEGABYTE
