"""Commits without Spark: each write once, whatever runs again; rows are found by their key; the log says what was written."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from hypothesis import given
from hypothesis import strategies as st

from lockstep import lake
from lockstep.lake import Txn
from lockstep.lake.small_commits import SmallCommits
from lockstep.settings import Settings

TABLE = "live.v"
SCHEMA = pa.schema([("page", pa.string()), ("views", pa.int64()), ("_revision", pa.int64())])
KEY = ("page",)
FIRST = Txn("live:live.v:1", 0)
Row = tuple[str | None, int, int]


def arrow(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@pytest.fixture
def table(settings):
    write_deltalake(lake.path(settings, TABLE), arrow())
    return SmallCommits(settings, TABLE)


@pytest.fixture
def rows(settings):
    def read() -> list[Row]:
        found = DeltaTable(lake.path(settings, TABLE)).to_pyarrow_table().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    return read


def test_rows_and_record_are_in_one_commit(settings, table, rows):
    table.append(arrow(("/", 1, 1), ("/cart", 2, 1)), FIRST, {"writer": "live", "batch_id": 0})
    newest = next(lake.commits(settings, TABLE))
    assert (newest.record, newest.rows) == ({"writer": "live", "batch_id": 0}, 2)
    assert newest.size > 0
    assert rows() == [("/", 1, 1), ("/cart", 2, 1)]


def test_a_write_that_runs_twice_changes_nothing(settings, table, rows):
    table.append(arrow(("/", 1, 1)), Txn(FIRST.app, 3), {})
    # Another process, which opens the table again after a crash, knows it too.
    for one in (table, SmallCommits(settings, TABLE)):
        one.append(arrow(("/", 1, 1)), Txn(FIRST.app, 3), {})
        one.merge(arrow(("/", 2, 1)), KEY, None, Txn(FIRST.app, 2), {})
    assert rows() == [("/", 1, 1)]
    # The numbers of another generation are its own.
    table.append(arrow(("/", 2, 1)), Txn("live:live.v:2", 0), {})
    assert len(rows()) == 2


def test_a_merge_replaces_the_row_of_its_key_and_inserts_the_others(settings, table, rows):
    table.append(arrow(("/", 1, 1), (None, 2, 1)), FIRST, {})
    table.merge(arrow(("/", 5, 1), (None, 6, 1), ("/cart", 7, 1)), KEY, None, Txn(FIRST.app, 1), {})
    assert rows() == [("/", 5, 1), ("/cart", 7, 1), (None, 6, 1)]
    assert next(lake.commits(settings, TABLE)).rows == 3


def test_a_merge_leaves_a_newer_row_alone(table, rows):
    table.append(arrow(("/", 1, 7), ("/cart", 1, 7)), FIRST, {})
    newer = "s._revision > t._revision"
    table.merge(arrow(("/", 2, 6), ("/cart", 2, 8)), KEY, newer, Txn(FIRST.app, 1), {})
    assert rows() == [("/", 1, 7), ("/cart", 2, 8)]


def test_a_merge_that_changes_nothing_is_on_record_too(settings, table, rows):
    table.append(arrow(("/", 1, 7)), FIRST, {})
    table.merge(arrow(("/", 2, 6)), KEY, "s._revision > t._revision", Txn(FIRST.app, 1), {"seq": 2})
    assert next(lake.commits(settings, TABLE)).record == {"seq": 2}
    assert table.last_transaction(FIRST.app) == 1
    assert rows() == [("/", 1, 7)]


def test_two_rows_of_one_key_are_refused(table, rows):
    table.append(arrow(("/", 1, 1)), FIRST, {})
    with pytest.raises(DeltaError, match="multiple source rows"):
        table.merge(arrow(("/", 2, 1), ("/", 3, 1)), KEY, None, Txn(FIRST.app, 1), {})
    assert rows() == [("/", 1, 1)]


def test_compaction_changes_no_row_and_leaves_one_file(settings, table, rows):
    for n in range(5):
        table.append(arrow((f"/{n}", n, 1)), Txn(FIRST.app, n), {"writer": "live", "batch_id": n})
    before = rows()
    table.compact()
    assert rows() == before
    assert len(table.file_sizes()) == 1
    assert len(DeltaTable(lake.path(settings, TABLE)).file_uris()) == 1
    table.append(arrow(("/5", 5, 1)), Txn(FIRST.app, 5), {})
    assert len(rows()) == 6


def test_vacuum_removes_what_no_version_of_the_last_week_has(settings, table, rows):
    table.append(arrow(("/", 1, 1)), FIRST, {})
    root = Path(lake.path(settings, TABLE))
    long_ago = time.time() - 8 * 86400
    for name, age in (("left-long-ago.parquet", long_ago), ("being-written.parquet", time.time())):
        (root / name).write_bytes(b"")
        os.utime(root / name, (age, age))
    for file in root.glob("part-*"):
        os.utime(file, (long_ago, long_ago))
    table.replace(arrow(("/", 2, 1)), "true", Txn(FIRST.app, 1), {})
    table.vacuum(168)
    assert not (root / "left-long-ago.parquet").exists()
    assert (root / "being-written.parquet").exists()
    assert len(list(root.glob("part-*"))) == 2, "the old file was needed until just now"
    assert rows() == [("/", 2, 1)]


def test_vacuum_without_anything_to_remove_makes_no_commit(table):
    table.append(arrow(("/", 1, 1)), FIRST, {})
    before = table.version
    table.vacuum(168)
    assert table.version == before


def test_vacuum_of_what_it_has_removed_before_makes_no_commit(settings, table):
    for n in range(3):
        table.replace(arrow(("/", n, 1)), "true", Txn(FIRST.app, n), {})
    table.vacuum(0)
    assert len(list(Path(lake.path(settings, TABLE)).glob("part-*"))) == 1
    before = SmallCommits(settings, TABLE).version
    for _ in range(2):
        SmallCommits(settings, TABLE).vacuum(0)
    assert SmallCommits(settings, TABLE).version == before


def test_vacuum_keeps_the_files_of_a_version_at_which_readers_are_held(settings, table):
    for n in range(3):
        table.replace(arrow(("/", n, 1)), "true", Txn(FIRST.app, n), {})
    # As if a week had passed.
    table.vacuum(0, keep=2)
    kept = DeltaTable(lake.path(settings, TABLE), version=2)
    assert kept.to_pyarrow_table()["views"].to_pylist() == [1]


def test_a_merge_reads_only_files_with_times_of_its_rows(settings):
    of_times = pa.schema([("at", pa.timestamp("us", "UTC")), ("page", pa.string()), ("views", pa.int64())])

    def on_day(day: int, views: int) -> pa.Table:
        return pa.Table.from_pylist([{"at": datetime(2026, 1, day, tzinfo=UTC), "page": "/", "views": views}], of_times)

    write_deltalake(lake.path(settings, TABLE), of_times.empty_table())
    table = SmallCommits(settings, TABLE)
    for day in range(1, 31):
        table.append(on_day(day, 1), Txn(FIRST.app, day), {})
    table.merge(on_day(20, 2), ["at", "page"], None, Txn(FIRST.app, 31), {})
    opened = DeltaTable(lake.path(settings, TABLE))
    assert opened.history(1)[0]["operationMetrics"]["num_target_files_scanned"] == 1
    views = opened.to_pyarrow_table().sort_by("at")["views"].to_pylist()
    assert views == [2 if day == 20 else 1 for day in range(1, 31)]


instants = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))
whole = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.dictionaries(st.tuples(instants | st.none(), whole | st.none()), st.integers(0, 9), max_size=3)))
def test_merges_by_times_and_numbers_leave_of_each_key_the_last_value(tmp_path_factory, batches):
    kinds = pa.schema([("at", pa.timestamp("us", "UTC")), ("number", pa.int64()), ("views", pa.int64())])
    settings, expected = Settings(home=tmp_path_factory.mktemp("lake")), {}
    write_deltalake(lake.path(settings, TABLE), kinds.empty_table())
    table = SmallCommits(settings, TABLE)
    for number, batch in enumerate(batches):
        found = [{"at": at, "number": n, "views": views} for (at, n), views in batch.items()]
        table.merge(pa.Table.from_pylist(found, kinds), ["at", "number"], None, Txn(FIRST.app, number), {})
        expected |= batch
    there = DeltaTable(lake.path(settings, TABLE)).to_pyarrow_table().to_pylist()
    assert len(there) == len(expected)
    assert {(row["at"], row["number"]): row["views"] for row in there} == expected


pages = st.sampled_from(["/", "/cart", None])
batches = st.lists(st.dictionaries(pages, st.integers(0, 9), max_size=3), max_size=5)


@given(batches)
def test_merges_leave_of_each_key_the_last_value(tmp_path_factory, batches):
    settings = Settings(home=tmp_path_factory.mktemp("lake"))
    write_deltalake(lake.path(settings, TABLE), arrow())
    table, expected = SmallCommits(settings, TABLE), {}
    for number, batch in enumerate(batches):
        table.merge(
            arrow(*((page, views, 1) for page, views in batch.items())),
            KEY,
            None,
            Txn(FIRST.app, number),
            {},
        )
        expected |= batch
    found = DeltaTable(lake.path(settings, TABLE)).to_pyarrow_table().to_pylist()
    assert len(found) == len(expected)
    assert {row["page"]: row["views"] for row in found} == expected
