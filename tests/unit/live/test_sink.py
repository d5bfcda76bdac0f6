"""Of the rows that one micro-batch has for a key, the one of the highest revision is written, over the one that is there."""

import time
from datetime import UTC, datetime

import pyarrow as pa
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from tests.support.ports import own_ports

from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import live_of
from lockstep.lake import Txn
from lockstep.lake.paths import path
from lockstep.lake.small_commits import SmallCommits, newest
from lockstep.live.generations import Generation
from lockstep.live.sink import ViewSink
from lockstep.settings import Settings

START = datetime(2026, 11, 10, 10, tzinfo=UTC)

SCHEMA = pa.schema([("user", pa.string()), ("page", pa.string()), ("views", pa.int64()), ("_revision", pa.int64())])
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


def test_a_window_is_replaced_in_every_time_zone_of_the_worker(tmp_path, monkeypatch):
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    view, settings = VIEWS["page_views_per_minute"], Settings()
    utc = pa.timestamp("us", "UTC")
    schema = pa.schema(
        [("window_start", utc), ("window_end", utc), ("page", pa.string()), ("views", pa.int64()), ("_updated_at", utc)]
    )
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
