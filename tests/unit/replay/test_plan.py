"""The plan, from ledgers alone: logs as Delta writes them, no broker and no Spark."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commits import entry, ledger_record, ranges, statistics, write_commit

from lockstep.definition.registry import VIEWS
from lockstep.ledger.ranges import Range, to_where
from lockstep.replay.plan import hull, plan, touches
from lockstep.replay.record import Replay
from lockstep.replay.request import Refused, Request, parse
from lockstep.settings import Settings

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
VIEW = "page_views_per_minute"


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path, lake=str(tmp_path / "lake"))


def write(settings, table, version, spans, first, last, rows=10, column="_arrival"):
    """A commit of a table's log, whose rows arrived between two minutes after START."""
    low, high = (f"{START + timedelta(minutes=m):%FT%T}.000Z" for m in (first, last))
    write_commit(
        settings,
        table,
        version,
        ledger_record(ranges(spans), seq=version),
        rows=rows,
        size=1000,
        timestamp=version,
        files=[statistics(rows, {column: low, "partition": 0}, {column: high, "partition": 0})],
    )


@pytest.fixture
def lake(settings):
    """Three runs of an hour each, on two partitions, in all three layers."""
    for n in range(3):
        taken = {0: (100 * n, 100 * (n + 1)), 1: (7 * n, 7 * (n + 1))}
        for table, column in (("bronze.page_views", "timestamp"), ("silver.page_views", "_arrival")):
            write(settings, table, n + 1, taken, 60 * n, 60 * n + 59, column=column)
        write(settings, f"gold.{VIEW}", n + 1, taken, 0, 0)
    return settings


def asked(**fields):
    span = {} if {"offsets", "versions"} & fields.keys() else {"from": START, "to": START + timedelta(hours=1)}
    return parse({"reason": "a test of plans"} | span | fields)


def spans(part):
    return {r.partition: (r.start, r.end) for r in part.ranges}


def test_gold_is_planned_from_silver_and_only_from_the_runs_with_rows_for_it(lake):
    found = plan(lake, asked(views=[VIEW]))
    (part,) = found.parts
    assert (part.source, part.rows, part.size) == ("silver.page_views", 20, 2000)
    assert spans(part) == {0: (0, 200), 1: (0, 14)}, "a row of the last minute may arrive after the hour"
    (target,) = found.targets
    assert (target.low, target.high) == (START, START + timedelta(hours=1))
    assert 60 <= target.windows <= 62
    later = plan(lake, asked(views=[VIEW], **{"from": START + timedelta(hours=2, minutes=10), "to": "2027-01-01"}))
    assert spans(later.parts[0]) == {0: (200, 300), 1: (14, 21)}
    assert later.targets[0].windows < 60, "there are no windows where there are no rows"


def test_silver_is_planned_from_bronze_in_whole_runs(lake):
    readers = [view.name for view in VIEWS.values() if "page_views" in view.streams]
    more = {"topics": ["page_views"], "layers": ["silver", "gold"], "views": readers}
    for way in (
        {"offsets": {"0": [150, 160]}},
        {"versions": "silver.page_views@2..2"},
        {"versions": "bronze.page_views@2..2"},
    ):
        found = plan(lake, asked(**more, **way))
        (part,) = found.parts
        assert (part.source, spans(part)) == ("bronze.page_views", {0: (100, 200), 1: (7, 14)})
        assert [t for t in found.targets if t.span] == [], "the windows follow from the rows"


def test_exact_offsets_are_enough_for_gold(lake):
    (part,) = plan(lake, asked(topics=["page_views"], offsets={"0": [150, 160]})).parts
    assert spans(part) == {0: (150, 160)}


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ({"topics": ["page_views"], "offsets": {"0": [0, 301]}}, r"its ledger has \[0, 300\)"),
        ({"topics": ["page_views"], "offsets": {"2": [0, 1]}}, "its ledger has nothing"),
        ({"versions": "bronze.page_views@1..4"}, "ends at version 3"),
        ({"versions": "bronze.payments@1..4"}, "does not exist yet"),
    ],
)
def test_what_the_ledger_does_not_have_is_refused(lake, way, says):
    with pytest.raises(Refused, match=says):
        plan(lake, asked(**way))


def test_nothing_is_planned_where_there_is_nothing(settings):
    found = plan(settings, asked())
    assert (found.parts, found.targets, found.rows) == ((), (), 0)


offsets = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted)


@given(st.dictionaries(st.integers(0, 2), offsets), st.dictionaries(st.integers(0, 2), offsets))
def test_ranges_touch_when_an_offset_is_in_both(one, other):
    left, right = (tuple(Range("t", "i", p, *span) for p, span in spans.items()) for spans in (one, other))
    inside = [{(p, n) for p, span in spans.items() for n in range(*span)} for spans in (one, other)]
    assert touches(left, right) == bool(inside[0] & inside[1])


def test_the_hull_has_every_partition_of_its_runs():
    runs = [
        entry([*ranges({0: (5, 9), 1: (3, 3)}, "t"), *ranges({0: (50, 60)}, "other")]),
        entry(ranges({0: (0, 5)}, "t")),
    ]
    whole = hull(runs, "t")
    assert [(r.partition, r.start, r.end) for r in whole] == [(0, 0, 9), (1, 3, 3)]
    assert to_where(whole) == "((partition = 0 AND offset >= 0 AND offset < 9))"


def test_a_stage_that_was_done_before_another_was_done_again_does_not_count():
    stages = {"planned": {}, "compared": {}, "shadowed": {}}
    replay = Replay("id", "me", Request(reason="why not", versions="bronze.page_views@1..2"), 0, stages)
    assert (replay.state, replay.is_open) == ("shadowed", True)
    assert not replay.has("compared", after="shadowed")
    assert replay.has("shadowed", after="planned")
