"""The rows of a micro-batch are in their tables once, of each key the one of the highest revision."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from hypothesis import given
from hypothesis import strategies as st
from tests.support.ports import own_ports

from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import live_of
from lockstep.lake import Txn
from lockstep.lake.paths import path
from lockstep.lake.small_commits import SmallCommits, newest
from lockstep.live import sink
from lockstep.live.checkpoint import Batch
from lockstep.live.generation import Generation, Job
from lockstep.live.sink import Sink, ViewSink
from lockstep.settings import Settings

START = datetime(2026, 11, 10, 10, tzinfo=UTC)

SCHEMA = pa.schema([("user", pa.string()), ("page", pa.string()), ("views", pa.int64()), ("_revision", pa.int64())])
TIME = pa.timestamp("us", "UTC")
# The columns of page_views_per_minute, and the one that its live table has besides.
MINUTES = pa.schema([("window_start", TIME), ("window_end", TIME), ("page", pa.string()), ("views", pa.int64())])
UPDATED_AT = pa.field("_updated_at", TIME)
texts = st.sampled_from(["a", "b", None])
# Each machine numbers its rows, so a key has each revision once.
rows = st.dictionaries(st.tuples(texts, texts, st.integers(1, 6)), st.integers(0, 9), max_size=20)


@given(rows)
def test_the_newest_row_of_each_key_is_kept(rows):
    made = [{"user": u, "page": p, "views": views, "_revision": r} for (u, p, r), views in rows.items()]
    expected = {}
    for row in sorted(made, key=lambda row: row["_revision"]):
        expected[row["user"], row["page"]] = row
    kept = newest(pa.Table.from_pylist(made, SCHEMA), ("user", "page"), "_revision").to_pylist()
    assert sorted(kept, key=repr) == sorted(expected.values(), key=repr)


@pytest.fixture
def minutes(tmp_path, monkeypatch):
    """The live table of views in minutes, and a function that writes one minute's row in a micro-batch of its own."""
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setattr(sink, "definition_version", lambda _: "1")
    view, settings = VIEWS["page_views_per_minute"], Settings()
    DeltaTable.create(path(settings, live_of(view)), MINUTES.append(UPDATED_AT))
    written = ViewSink(Generation(view.name), view)

    def write(minute):
        at = START + timedelta(minutes=minute)
        row = {"window_start": at, "window_end": at, "page": "/", "views": minute}
        found = pa.Table.from_pylist([row], MINUTES)
        written.write(settings, found, Batch(minute, (), 0, 0, {}), 0)

    return Path(path(settings, live_of(view))), write


def test_a_live_table_has_few_files_however_long_its_query_runs(minutes, monkeypatch):
    monkeypatch.setattr(sink, "TIDY_EVERY", 20)
    monkeypatch.setattr(sink, "OLD_FILES_HOURS", 0)
    root, write = minutes
    counted = {}
    for minute in range(120):
        write(minute)
        counted[minute] = len(list(root.glob("*.parquet")))
    assert max(list(counted.values())[60:]) <= max(list(counted.values())[:60])
    assert sorted(DeltaTable(root).to_pyarrow_table()["views"].to_pylist()) == [*range(120)]


def test_a_window_is_replaced_in_every_time_zone_of_the_worker(tmp_path, monkeypatch):
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    view, settings = VIEWS["page_views_per_minute"], Settings()
    schema = MINUTES.append(UPDATED_AT)
    DeltaTable.create(path(settings, live_of(view)), schema)
    try:
        for batch, views in enumerate([1, 2]):
            rows = pa.Table.from_pylist(
                [{"window_start": START, "window_end": START, "page": "/", "views": views, "_updated_at": START}],
                schema,
            )
            table = SmallCommits(settings, live_of(view))
            ViewSink(Generation(view.name), view)._windows(table, rows, Txn("live", batch + 1), {})
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [row["views"] for row in DeltaTable(path(settings, live_of(view))).to_pyarrow_table().to_pylist()] == [2]


class Spark:
    """What ``foreachBatch`` gets: one row of each of some views, in one minute."""

    sparkSession = None

    def __init__(self, labels):
        window = {"window_start": START, "window_end": START, "page": "/", "views": 1}
        kind = pa.list_(pa.struct(MINUTES))
        rows = [{"_view": label, label: [window]} for label in labels]
        self._rows = pa.Table.from_pylist(rows, pa.schema({"_view": pa.string(), **dict.fromkeys(labels, kind)}))

    def _to_table(self):
        return self._rows, None


def test_a_micro_batch_fails_where_one_of_its_tables_takes_no_commit_and_the_others_keep_theirs(tmp_path, monkeypatch):
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setattr(sink, "definition_version", lambda _: "1")
    monkeypatch.setattr(sink.lease, "acquire", lambda *_: None)
    monkeypatch.setattr(sink.Checkpoint, "batch", lambda _, number: Batch(number, (), 0, 0, {}))
    declared, settings = VIEWS["page_views_per_minute"], Settings()
    views = [replace(declared, name=name) for name in ("first", "broken", "last")]
    shared = Job("_windows", 1, declared.streams)
    job = Sink([(Generation(view.name, shared=shared), view) for view in views])
    tables = {view.name: path(settings, live_of(view)) for view in views}
    for name in ("first", "last"):
        DeltaTable.create(tables[name], MINUTES.append(UPDATED_AT))
    micro_batch = Spark([*job.views])
    with pytest.raises(TableNotFoundError, match="broken"):
        job(micro_batch, 5)
    written = {name: DeltaTable(tables[name]).version() for name in ("first", "last")}
    DeltaTable.create(tables["broken"], MINUTES.append(UPDATED_AT))
    job(micro_batch, 5)
    assert {name: DeltaTable(tables[name]).version() for name in written} == written
    assert [DeltaTable(table).to_pyarrow_table().num_rows for table in tables.values()] == [1, 1, 1]
