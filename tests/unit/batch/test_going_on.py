"""However machines get their events, some keys at a time or in batches of Spark's, they give the same rows."""

from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType, StructType, TimestampType

from lockstep.batch import compute, going_on
from lockstep.batch.going_on import process_new
from lockstep.batch.saved_machines import SCHEMA
from lockstep.definition import Input, Keyed
from lockstep.definition.events import COLUMNS
from lockstep.definition.states import micros

START = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = START + timedelta(days=30)


def count(state, change):
    """A row for each change: how many there were, under a name that two machines may share."""
    number = (state or 0) + 1
    return number, [{"name": change.data["name"], "number": number}]


VIEW = Keyed(
    name="counted",
    description="How many changes a product had.",
    inputs=(Input("inventory", "product_id", ("product_id",), time="_committed_at"),),
    process=count,
    columns={"name": "STRING", "number": "BIGINT"},
    key=("name",),
    allowed_lateness=timedelta(0),
)
KINDS = {"STRING": pa.string(), "BIGINT": pa.int64()}
EVENTS = pa.schema([(name, KINDS[kind]) for name, kind in COLUMNS.items()])
COLUMNS_OF_GOLD = StructType().add("at", TimestampType()).add("name", StringType()).add("number", LongType())
changes = st.lists(st.tuples(st.sampled_from(["a", "é", "z", "😀"]), st.sampled_from(["one", "two"])), max_size=30)


def arrived(found, first):
    rows = [
        {
            "_key": key,
            "_time": micros(START + timedelta(seconds=number)),
            "_id": f"row {number}",
            "_stream": "inventory",
            "_position": f"{number:020}",
            "_data": f'{{"name": "{name}", "_deleted": false}}',
        }
        for number, (key, name) in enumerate(found, first)
    ]
    return pa.Table.from_pylist(rows, EVENTS)


def gone_on(saved, found, first, at_once):
    with patch.object(going_on, "AT_ONCE", at_once):
        rows, after = process_new(VIEW, saved, arrived(found, first), UNTIL)
    return rows, after.sort_by("_key")


@given(changes, changes, st.integers(1, 10))
def test_the_rows_and_the_machines_are_those_of_all_events_at_once(before, now, at_once):
    _, saved = gone_on(SCHEMA.empty_table(), before, 0, 1000)
    expected = gone_on(saved, now, len(before), 1000)
    assert gone_on(saved, now, len(before), at_once) == expected


def test_no_more_events_are_taken_at_once_than_the_keys_allow(monkeypatch):
    taken = []
    monkeypatch.setattr(going_on, "go_on", lambda *given: taken.append(len([*given[2]])) or ([], SCHEMA.empty_table()))
    gone_on(SCHEMA.empty_table(), [(key, "one") for key in "abcdefgh" for _ in range(5)], 0, 10)
    assert taken == [10, 10, 10, 10]


@given(changes, st.integers(1, 10))
def test_history_gives_the_same_rows_and_machines_however_spark_divides_it_into_batches(found, size):
    history = arrived(found, 0)
    run, schema = compute._machines(VIEW, UNTIL, COLUMNS_OF_GOLD)
    given = pa.Table.from_batches(run(history.sort_by("_key").to_batches(size)), schema)
    rows = [row["_row"] for row in given.to_pylist() if row["_row"]]
    machines = given.filter(pc.field("_row").is_null()).drop("_row")

    keys = sorted({key for key, _ in found})
    alone = [process_new(VIEW, SCHEMA.empty_table(), history.filter(pc.field("_key") == key), UNTIL) for key in keys]
    assert rows == [row for rows_of_key, _ in alone for row in rows_of_key]
    assert machines == pa.concat_tables([SCHEMA.empty_table(), *(after for _, after in alone)])
