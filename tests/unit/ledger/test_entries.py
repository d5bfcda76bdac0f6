"""The ledger, as it is read back from a Delta log."""

import json
from dataclasses import replace

import pytest

from lockstep.errors import LedgerBroken
from lockstep.lake import parse_commit
from lockstep.ledger.entries import Entry, check_tip, entry, problems, record
from lockstep.ledger.heads import Head
from lockstep.ledger.ranges import Range


def an_entry(seq: int, start: int, end: int, rows: int | None = None) -> Entry:
    held = Range("orders", "id-1", 0, start, end)
    return Entry(
        "bronze.orders", seq, seq, "run", "code", (held,), end - start if rows is None else rows, {}, {}, {}, 0
    )


CHAIN = [an_entry(1, 0, 10), an_entry(2, 10, 25), an_entry(3, 25, 25), an_entry(4, 25, 40)]


def test_a_contiguous_chain_has_no_problems():
    assert list(problems(CHAIN)) == []


def test_holes_in_the_log_leave_fewer_rows_than_offsets_and_are_no_problem():
    assert list(problems([an_entry(1, 0, 10, rows=7)])) == []


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ([CHAIN[0], CHAIN[2]], "follows entry 1"),
        ([CHAIN[0], replace(CHAIN[3], seq=2)], r"misses offsets \[10, 25\)"),
        ([CHAIN[0], an_entry(2, 8, 20)], r"repeats offsets \[8, 10\)"),
        ([an_entry(1, 0, 10, rows=11)], "11 rows out of 10 offsets"),
        ([CHAIN[0], replace(CHAIN[1], ranges=())], "orders-0 is missing"),
    ],
)
def test_every_break_of_the_chain_is_named(broken, says):
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(list(problems(broken)))


def test_a_missing_newest_commit_is_found_against_the_head():
    with pytest.raises(LedgerBroken, match=r"ends with entry 2 .* but entry 3 .* was committed"):
        check_tip("bronze.orders", CHAIN[1], Head(3, 3, ()))
    with pytest.raises(LedgerBroken, match="ends with nothing"):
        check_tip("bronze.orders", None, Head(3, 3, ()))
    check_tip("bronze.orders", CHAIN[2], Head(2, 2, ()))
    check_tip("bronze.orders", CHAIN[2], None)


def test_a_commit_says_what_it_took_and_which_time_each_partition_reached():
    ranges = [Range("orders", "id-1", 0, 0, 10), Range("orders", "id-1", 1, 5, 5, idle_at=77)]
    stats = {
        "numRecords": 10,
        "minValues": {"partition": 0, "timestamp": "2026-11-20T08:00:00.000Z"},
        "maxValues": {"partition": 0, "timestamp": "2026-11-20T08:26:00.500Z"},
    }
    log = "\n".join(
        json.dumps(action)
        for action in [
            {
                "commitInfo": {
                    "timestamp": 9,
                    "operation": "WRITE",
                    "operationMetrics": {"numOutputRows": "10"},
                    "userMetadata": json.dumps(record("ingest", an_entry(1, 0, 0), "run-1", ranges)),
                }
            },
            {"add": {"path": "a.parquet", "stats": json.dumps(stats)}},
        ]
    )
    read = entry(parse_commit("bronze.orders", 0, log))
    assert (read.seq, read.run_id, read.rows, read.ranges) == (2, "run-1", 10, tuple(ranges))
    assert read.reached == {0: 1795163160500, 1: 77}


def test_a_commit_of_somebody_else_has_no_record():
    text = json.dumps({"commitInfo": {"operation": "OPTIMIZE", "userMetadata": "by hand"}})
    assert parse_commit("bronze.orders", 3, text).record == {}
