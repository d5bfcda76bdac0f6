"""A plan is resolved from ledgers alone: logs as Delta writes them, no broker and no Spark."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.commits import ledger_record, ranges, statistics, write_commit

from lockstep.definition.registry import VIEWS
from lockstep.replay.parse import parse
from lockstep.replay.request import ReplayRefused
from lockstep.replay.resolve import resolve

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
VIEW = "page_views_per_minute"


def write(settings, table, version, spans, first, last, column="_arrival"):
    """A run of ten rows, which arrived between two minutes after START."""
    low, high = ({column: f"{START + timedelta(minutes=m):%FT%T}.000Z", "partition": 0} for m in (first, last))
    record = ledger_record(ranges(spans, topic_id="id"), seq=version)
    files = [statistics(10, low, high)]
    write_commit(settings, table, version, record, rows=10, size=1000, timestamp=version, files=files)


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
    plan = resolve(lake, asked(views=[VIEW]))
    (part,) = plan.parts
    assert (part.source, part.rows, part.size) == ("silver.page_views", 20, 2000)
    assert spans(part) == {0: (0, 200), 1: (0, 14)}, "a row of the last minute may arrive after the hour"
    (target,) = plan.targets
    assert (target.low, target.high) == (START, START + timedelta(hours=1))
    assert 60 <= target.windows <= 62
    later = resolve(lake, asked(views=[VIEW], **{"from": START + timedelta(hours=2, minutes=10), "to": "2027-01-01"}))
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
        plan = resolve(lake, asked(**more, **way))
        (part,) = plan.parts
        assert (part.source, spans(part)) == ("bronze.page_views", {0: (100, 200), 1: (7, 14)})
        assert [t for t in plan.targets if t.span] == [], "the windows follow from the rows"


def test_a_run_whose_rows_of_the_interval_were_all_put_aside_is_planned_too(settings):
    readers = [view.name for view in VIEWS.values() if "page_views" in view.streams]
    write(settings, "bronze.page_views", 1, {0: (0, 100)}, 0, 59, column="timestamp")
    write(settings, "silver.page_views", 1, {0: (0, 100)}, 0, 2)
    half_past = {"from": START + timedelta(minutes=30), "to": START + timedelta(minutes=40)}
    more = {"topics": ["page_views"], "layers": ["silver", "gold"], "views": readers}
    (part,) = resolve(settings, asked(**more, **half_past)).parts
    assert (spans(part), part.rows) == ({0: (0, 100)}, 10)


def test_exact_offsets_are_enough_for_gold(lake):
    (part,) = resolve(lake, asked(topics=["page_views"], offsets={"0": [150, 160]})).parts
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
    with pytest.raises(ReplayRefused, match=says):
        resolve(lake, asked(**way))


def test_nothing_is_planned_where_there_is_nothing(settings):
    plan = resolve(settings, asked())
    assert (plan.parts, plan.targets, plan.rows) == ((), (), 0)
