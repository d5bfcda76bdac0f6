"""A few new rows are summed up without Spark: which of them count, and when the first and the last of those happened."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lockstep.batch.summary import Summary, summary_of_few
from lockstep.contracts import CONTRACTS
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
INSTANT = pa.timestamp("us", "UTC")
EVENTS = next(name for name, contract in CONTRACTS.items() if contract.kind == "events")
CHANGES = next(name for name, contract in CONTRACTS.items() if contract.kind == "changes")
LIMIT = timedelta(seconds=10)
KEYED = Keyed(
    name="some",
    columns={"n": "BIGINT"},
    key=("n",),
    allowed_lateness=LIMIT,
    inputs=(Input(EVENTS, "'all'"), Input(CHANGES, "'all'")),
    process=lambda state, _: (state, []),
)
WINDOWED = next(view for view in VIEWS.values() if not view.keeps_until and view.policy == "ignore")


def after(milliseconds):
    return None if milliseconds is None else START + timedelta(milliseconds=milliseconds)


def rows(triples):
    """Rows of silver: when each happened, its Kafka timestamp, and the watermark of its partition (milliseconds)."""
    names = ("event_time", "_arrival", "_watermark")
    columns = zip(*triples, strict=True) if triples else ((), (), ())
    return pa.table({n: pa.array([*map(after, c)], INSTANT) for n, c in zip(names, columns, strict=True)})


def event_rows(triples, policy="ignore", final=START - timedelta(days=1)):
    """The summary of events for a view with machines."""
    view = replace(KEYED, inputs=KEYED.inputs[:1], policy=policy)
    return summary_of_few(view, {EVENTS: rows(triples)}, final)


def test_a_row_counts_as_long_as_it_arrives_within_the_allowed_lateness():
    on_time, late = (0, 10_000, 0), (0, 10_001, 0)
    assert event_rows([on_time, late]).counts == {"counted": 1, "ignored": 1, "side_output": 0}


def test_a_late_row_may_be_a_side_output():
    assert event_rows([(0, 10_001, 0)], policy="side_output").counts == {"counted": 0, "ignored": 0, "side_output": 1}


def test_a_row_behind_its_partitions_watermark_arrives_with_the_watermark():
    assert event_rows([(0, 9_000, 10_001)]).counts["ignored"] == 1


def test_a_row_without_a_watermark_arrives_at_its_timestamp():
    assert event_rows([(0, 10_000, None)]).counts["counted"] == 1


def test_machines_take_no_event_from_before_their_rows_are_final():
    assert event_rows([(0, 0, 0), (1, 1, 1)], final=after(1)).counts == {"counted": 1, "ignored": 1, "side_output": 0}


def test_a_row_without_a_time_neither_counts_nor_is_late():
    assert event_rows([(None, 0, 0)]) == Summary({"counted": 0, "ignored": 0, "side_output": 0})


def test_no_row_is_a_summary_too():
    assert event_rows([]) == Summary({"counted": 0, "ignored": 0, "side_output": 0})


def test_windows_do_not_look_at_watermarks():
    row = rows([(0, 0, 3_600_000)])
    assert summary_of_few(WINDOWED, {WINDOWED.input: row}).counts["counted"] == 1


def test_changes_of_a_table_always_count_at_their_timestamp():
    few = {EVENTS: rows([]), CHANGES: rows([(None, 5_000, None), (None, 7_000, None)])}
    assert summary_of_few(KEYED, few, after(6_000)) == Summary(
        {"counted": 2, "ignored": 0, "side_output": 0}, after(5_000), after(7_000)
    )


times = st.integers(-30_000, 30_000)


@given(st.lists(st.tuples(times, times, st.none() | times), max_size=30), times)
def test_it_is_the_rule_of_the_view(triples, final):
    lateness = [
        (happened, max(arrived, -(10**9) if mark is None else mark) - happened) for happened, arrived, mark in triples
    ]
    counted = [happened for happened, late_by in lateness if late_by <= 10_000 and happened >= final]
    assert event_rows(triples, final=after(final)) == Summary(
        {"counted": len(counted), "ignored": len(triples) - len(counted), "side_output": 0},
        after(min(counted, default=None)),
        after(max(counted, default=None)),
    )
