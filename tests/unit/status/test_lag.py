"""Lag per partition, batch and live, from the offsets of the log and the positions of the layers."""

import json
from datetime import UTC, datetime, timedelta
from io import StringIO

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lockstep.ledger.ranges import TopicOffsets
from lockstep.status.lag import lag_table, overdue, partition_lags, total

TOPIC = TopicOffsets("page_views", "id", {0: (0, 100), 1: (40, 90), 2: (0, 0)})
POSITIONS = {"bronze": {0: 100, 1: 80, 2: 0}, "live.per_minute": {0: 70}}


def test_each_partition_has_its_log_end_and_the_positions_of_batch_and_live():
    first, second, empty = partition_lags(TOPIC, POSITIONS)
    assert (first.end, dict(first.position), first.lag) == (
        100,
        {"bronze": 100, "live.per_minute": 70},
        {"bronze": 0, "live.per_minute": 30},
    )
    assert second.lag == {"bronze": 10, "live.per_minute": 50}, "offsets that retention removed do not count"
    assert empty.lag == {"bronze": 0, "live.per_minute": 0}


def test_the_screen_and_json_have_the_same_numbers():
    lags = partition_lags(TOPIC, POSITIONS)
    console = Console(width=100, file=StringIO())
    console.print(lag_table({"page_views": lags}))
    assert [line.split() for line in console.file.getvalue().splitlines()][1:3] == [
        ["page_views-0", "bronze", "0", "100", "0", "100", "0"],
        ["page_views-0", "live.per_minute", "0", "100", "0", "70", "30"],
    ]
    assert lags[0].as_dict()["lag"] == {"bronze": 0, "live.per_minute": 30}


def test_records_behind_an_open_transaction_are_lag_although_nobody_can_read_them_yet():
    written_at = datetime(2026, 11, 20, tzinfo=UTC)
    topic = TopicOffsets("t", "id", {0: (0, 100)}, ends={0: 130})
    (partition,) = partition_lags(topic, {"bronze": {0: 100}}, {("t", 0): written_at})
    assert (partition.waiting, partition.lag) == (30, {"bronze": 30})
    assert json.loads(json.dumps(partition.as_dict()))["written_at"] == "2026-11-20T00:00:00+00:00"


@given(st.dictionaries(st.integers(0, 8), st.tuples(st.integers(0, 50), st.integers(50, 99)), min_size=1), st.data())
def test_a_streams_lag_is_the_sum_over_its_partitions(partitions, data):
    at = {p: data.draw(st.integers(start, end)) for p, (start, end) in partitions.items()}
    lags = partition_lags(TopicOffsets("t", "id", partitions), {"bronze": at})
    assert total(lags) == {"bronze": sum(end - at[p] for p, (_, end) in partitions.items())}


def test_a_layer_is_overdue_by_the_offsets_that_are_older_than_it_may_lag():
    lags = partition_lags(TOPIC, {"bronze": {0: 100, 1: 80}, "live.per_minute": {0: 70, 1: 45}})
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    at = {minute: {("page_views", 0): 95, ("page_views", 1): 85}, hour: {("page_views", 0): 71}}
    of_a_minute = overdue("page_views", lags, {"bronze": minute, "live.per_minute": minute}, at)
    assert of_a_minute == {"bronze": 5, "live.per_minute": 25 + 40}
    # No record of partition 1 is from the last hour: all 90 are older.
    assert overdue("page_views", lags, {"bronze": hour, "live.per_minute": hour}, at) == {
        "bronze": 10,
        "live.per_minute": 1 + 45,
    }


def test_what_waits_behind_an_open_transaction_is_not_overdue():
    topic = TopicOffsets("t", "id", {0: (0, 100)}, ends={0: 130})
    minute = timedelta(minutes=1)
    assert overdue("t", partition_lags(topic, {"bronze": {0: 100}}), {"bronze": minute}, {minute: {}}) == {}
