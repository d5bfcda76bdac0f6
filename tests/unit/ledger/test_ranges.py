"""The arithmetic of offset ranges."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.errors import LedgerBroken
from lockstep.ledger.planning import plan, plan_downstream
from lockstep.ledger.ranges import Range, TopicOffsets, consecutive, decode, encode, ends, size, to_where, where_offsets

logs = st.dictionaries(st.integers(0, 7), st.tuples(st.integers(0, 1000), st.integers(0, 5000)), min_size=1)


def topic_offsets(spans: dict[int, tuple[int, int]], topic_id: str = "id-1") -> TopicOffsets:
    return TopicOffsets("orders", topic_id, {p: (first, first + held) for p, (first, held) in spans.items()})


@given(logs, st.integers(1, 3000))
def test_a_backlog_drains_in_steps_that_join_without_gap_or_overlap(spans, limit):
    log, done = topic_offsets(spans), []
    for _ in range(sum(held for _, held in spans.values()) // limit + 2):
        step = plan(done, log, limit)
        assert size(step) <= limit
        if done:
            assert ends(done) == {r.partition: r.start for r in step}
        else:
            assert {r.partition: r.start for r in step} == {p: first for p, (first, _) in log.partitions.items()}
        done = step
    assert ends(done) == {p: last for p, (_, last) in log.partitions.items()}


@given(logs, st.integers(1, 3000))
def test_a_step_uses_its_whole_allowance_while_there_is_a_backlog(spans, limit):
    held = sum(held for _, held in spans.values())
    assert size(plan([], topic_offsets(spans), limit)) == min(held, limit)


def test_a_run_that_failed_after_offset_100_starts_at_101():
    done = [Range("orders", "id-1", 0, 0, 101)]
    assert plan(done, topic_offsets({0: (0, 150)}), 1000) == [Range("orders", "id-1", 0, 101, 150)]


def test_a_partition_added_midway_is_read_from_its_beginning():
    done = [Range("orders", "id-1", 0, 0, 10)]
    assert plan(done, topic_offsets({0: (0, 10), 1: (0, 7)}), 1000)[1] == Range("orders", "id-1", 1, 0, 7)


def test_a_range_that_runs_backwards_cannot_be_made():
    with pytest.raises(LedgerBroken):
        Range("orders", "id-1", 0, 10, 9)


def test_a_downstream_table_starts_where_its_sources_ledger_started():
    source = [Range("orders", "id-1", 0, 900, 1000), Range("orders", "id-1", 1, 40, 50)]
    assert ends(plan_downstream([], source, {0: 500, 1: 40}, 10_000)) == {0: 1000, 1: 50}
    assert [r.start for r in plan_downstream([], source, {0: 500, 1: 40}, 10_000)] == [500, 40]


def test_a_source_whose_newest_commits_are_gone_stops_the_table_that_had_taken_them():
    taken, source = [Range("orders", "id-1", 0, 0, 10)], [Range("orders", "id-1", 0, 0, 7)]
    with pytest.raises(LedgerBroken, match="the source ends at offset 7, and rows up to 10 were taken of it"):
        plan_downstream(taken, source, {}, 1000)


def test_a_predicate_selects_the_rows_of_the_ranges_and_nothing_else():
    ranges = [Range("orders", "id-1", 0, 5, 7), Range("orders", "id-1", 1, 3, 3)]
    assert to_where(ranges) == "((partition = 0 AND offset >= 5 AND offset < 7))"
    assert to_where(ranges[1:]) == "false"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))))
def test_a_record_has_all_ranges(places):
    ranges = [Range(topic, f"id-{topic}", p, start, start + more) for topic, p, start, more in places]
    record = json.loads(json.dumps(encode(ranges)))
    assert sorted(decode(record)) == sorted(ranges)
    assert encode(decode(record)) == record


def test_a_reader_that_stops_before_the_end_of_a_log_takes_no_offset_after_that():
    log = topic_offsets({0: (0, 10), 1: (5, 10), 2: (0, 10)})
    taken = plan([], log.below({0: 4, 1: 3}), 1000)
    assert [(r.partition, r.start, r.end) for r in taken] == [(0, 0, 4), (1, 5, 5), (2, 0, 10)]


def test_single_offsets_are_selected_by_as_few_conditions_as_they_have_gaps():
    assert where_offsets({1: [7, 3, 4, 5, 9], 0: range(100)}, "p", "o") == (
        "((p = 0 AND (o BETWEEN 0 AND 99)) OR (p = 1 AND (o BETWEEN 3 AND 5 OR o IN (7, 9))))"
    )
    assert where_offsets({0: (), 2: [1]}, "p", "o") == "((p = 2 AND (o IN (1))))"
    assert where_offsets({0: ()}) == where_offsets({}) == "false"


@given(st.lists(st.integers(0, 50)))
def test_rows_of_consecutive_offsets_are_the_offsets_and_never_touch(offsets):
    rows = [*consecutive(offsets)]
    assert [o for first, last in rows for o in range(first, last + 1)] == sorted({*offsets})
    assert all(following > last + 1 for (_, last), (following, _) in pairwise(rows))
