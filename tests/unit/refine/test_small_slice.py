"""What silver takes of a small slice: by the rule, however the log is cut into slices."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.contracts import CONTRACTS
from lockstep.definition.view import literal
from lockstep.ledger.entries import Entry
from lockstep.refine import small_slice
from lockstep.refine.small_slice import classify, kept_before

EVENTS, CHANGES = CONTRACTS["page_views"], CONTRACTS["products"]
WINDOW = EVENTS.dedup_window // timedelta(microseconds=1)
BOUND = EVENTS.max_out_of_orderness // timedelta(microseconds=1)
ARRIVAL = pa.timestamp("us", "UTC")

# An id, the time since the record before (which may be negative), and what is wrong with it.
event = st.tuples(
    st.sampled_from("abc"), st.integers(-WINDOW // 10, WINDOW // 2), st.sampled_from([None, None, None, "malformed"])
)
logs = st.lists(st.lists(event, max_size=12), min_size=1, max_size=3)
change = st.tuples(st.sampled_from("cur"), st.integers(1, 9), st.integers(1, 2), st.booleans())


def entry(**fields):
    known = {"table": "silver.t", "version": 1, "seq": 1, "run_id": "r", "code_version": "1", "ranges": (), "rows": 0}
    return Entry(**known, counts={}, totals={}, committed_at=0, **fields)


def records(partitions):
    """The records of each partition: its number, id, arrival in whole milliseconds (as microseconds) and reason."""
    found = []
    for partition, log in enumerate(partitions):
        at = 10 * WINDOW
        for id, step, reason in log:
            at += step // 1000 * 1000
            found.append((partition, id, at, reason))
    return found


def table(rows):
    partitions, ids, arrivals, reasons = zip(*rows, strict=True) if rows else ((),) * 4
    return pa.table(
        {
            "_partition": pa.array(partitions, pa.int32()),
            "event_id": pa.array(ids, pa.string()),
            "_arrival": pa.array(arrivals, pa.int64()).cast(ARRIVAL),
            "_erased": pa.array([False] * len(rows), pa.bool_()),
            "_marker": pa.array([False] * len(rows), pa.bool_()),
            "_reason": pa.array(reasons, pa.string()),
        }
    )


def outcomes_by_the_rule(rows):
    kept = {}
    for _, id, at, reason in rows:
        if reason:
            yield "quarantined"
        elif id in kept and at - kept[id] <= WINDOW:
            yield "duplicates"
        else:
            kept[id] = at
            yield "silver"


def test_copies_are_looked_for_no_further_back_than_a_record_that_could_be_one(monkeypatch):
    """Heartbeats and broken records may have any timestamp, and silver's log is long."""
    asked = []

    def collect(_settings, _table, where, columns):
        asked.append(where)
        return table([]).select(columns)

    monkeypatch.setattr(small_slice.small_commits, "collect", collect)
    day = 24 * 3600 * 1_000_000
    old, good = [(0, "a", 0, "malformed")], [(0, "b", 400 * day, None)]
    heartbeat = table([(0, None, 0, None)]).set_column(4, "_marker", pa.array([True]))
    kept_before(None, entry(), pa.concat_tables([table(old), heartbeat, table(good)]), EVENTS)
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=400) - EVENTS.dedup_window
    assert asked == [f"_arrival >= {literal(at)}"]
    assert kept_before(None, entry(), pa.concat_tables([table(old), heartbeat]), EVENTS) == {}
    assert len(asked) == 1


@given(logs, st.data())
def test_what_is_kept_does_not_depend_on_how_the_log_is_cut(partitions, data):
    rows = records(partitions)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    kept, found = {}, []
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        outcomes = classify(table(rows[start:end]), EVENTS, None, kept)["_outcome"].to_pylist()
        found += outcomes
        for (_, id, at, _), outcome in zip(rows[start:end], outcomes, strict=True):
            if outcome == "silver":
                kept[(id,)] = at
    assert found == [*outcomes_by_the_rule(rows)]


@given(logs)
def test_a_watermark_follows_the_newest_record_of_its_partition(partitions):
    rows, before = records(partitions), {0: 10 * WINDOW // 1000}
    marks = classify(table(rows), EVENTS, entry(newest=before), {})["_watermark"].cast(pa.int64()).to_pylist()
    for index, (partition, *_) in enumerate(rows):
        so_far = [at for p, _, at, _ in rows[: index + 1] if p == partition]
        known = [before[partition] * 1000] if partition in before else []
        assert marks[index] == max(so_far + known) - BOUND


def changes(rows):
    ops, lsns, generations, deleted = zip(*rows, strict=True)
    return pa.table(
        {
            "_partition": pa.array([0] * len(rows), pa.int32()),
            "product_id": pa.array([str(n) for n in range(len(rows))]),
            "_arrival": pa.array(range(len(rows)), pa.int64()).cast(ARRIVAL),
            "_erased": pa.array([False] * len(rows)),
            "_marker": pa.array([False] * len(rows)),
            "_reason": pa.array([None] * len(rows), pa.string()),
            "_by_us": pa.array([False] * len(rows)),
            "_op": pa.array(ops),
            "_deleted": pa.array(deleted),
            "_generation": pa.array(generations, pa.int32()),
            "_commit_lsn": pa.array(lsns, pa.int64()),
            "_lsn": pa.array(lsns, pa.int64()),
        }
    )


@given(st.lists(change, min_size=1, max_size=12))
def test_a_streamed_change_has_fallen_if_one_before_it_is_newer(rows):
    found = classify(changes(rows), CHANGES, entry(newest={}, commits={0: (1, 4)}), {}).to_pylist()
    for index, (op, lsn, generation, _) in enumerate(rows):
        before = [(1, 4), *((g, at) for kind, at, g, _ in rows[:index] if kind != "r")]
        assert found[index]["_fallen"] == (op != "r" and (generation, lsn) < max(before))
        assert found[index]["_earlier_commit"] == max(before)[1]


@given(st.lists(change, min_size=1, max_size=12))
def test_a_change_that_a_truncate_has_ended_is_older_than_it_and_no_delete(rows):
    found = classify(changes(rows), CHANGES, entry(newest={}, truncated=(1, 5, 5, 0)), {}).to_pylist()
    for row, (_, lsn, generation, deleted) in zip(found, rows, strict=True):
        assert row["_ended"] == ((generation, lsn, lsn) < (1, 5, 5) and not deleted)
