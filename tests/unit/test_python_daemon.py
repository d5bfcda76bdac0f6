"""Python workers do not look for modules in archives, and take rows for a stateful operator out of Arrow by columns."""

import io
import sys
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.serializers import TransformWithStateInPySparkRowSerializer

from lockstep.python_daemon import leave_out_archives, load_by_columns

ROWS = st.fixed_dictionaries(
    {
        "key": st.integers(0, 2),
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "text": st.none() | st.text(),
        "time": st.none() | st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
        "amount": st.none() | st.decimals(-99, 99, places=2),
        "many": st.none() | st.lists(st.integers(0, 9), max_size=2),
    }
)
SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("number", pa.int64()),
        ("text", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(10, 2)),
        ("many", pa.list_(pa.int64())),
    ]
)


def stream_of(batches):
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, SCHEMA) as writer:
        for rows in batches:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, SCHEMA))
    stream.seek(0)
    return stream


def loaded(load, batches):
    serializer = TransformWithStateInPySparkRowSerializer(100)
    serializer.key_offsets = [0]
    return [(mode, key, rows and [*rows]) for mode, key, rows in load(serializer, stream_of(batches))]


@given(st.lists(st.lists(ROWS, max_size=5), max_size=4))
def test_the_rows_are_those_that_sparks_own_way_gives(batches):
    sparks = loaded(TransformWithStateInPySparkRowSerializer.load_stream, batches)
    assert loaded(load_by_columns, batches) == sparks
    assert [row.asDict() for _, _, rows in sparks for row in rows or ()] == [row for rows in batches for row in rows]


def test_archives_are_no_longer_on_the_path(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/project", "/jars/spark-core.jar", "/lib/pyspark.zip", "/site-packages"])
    monkeypatch.setattr(sys, "path_importer_cache", {"/project": None, "/jars/spark-core.jar": object()})
    leave_out_archives()
    assert sys.path == ["/project", "/site-packages"]
    assert sys.path_importer_cache == {"/project": None}
