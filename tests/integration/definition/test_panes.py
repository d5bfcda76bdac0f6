"""Windows that are made of panes are those in which each row was counted."""

from datetime import timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.shop.integration.views.frames import TEN

from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import ddl
from lockstep.definition.panes import panes
from lockstep.definition.registry import VIEWS
from lockstep.definition.windowed import Windowed
from lockstep.definition.windowing import in_one_step, transform

# Around the ends of panes of a minute and of five, and of the limits for late rows; in microseconds.
NEAR = st.sampled_from([0, 5_000_000, 30_000_000, 60_000_000, 300_000_000, 3_600_000_000])
SHIFTS = st.integers(-1, 1)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "event_time": st.tuples(NEAR, SHIFTS, st.integers(-4, 4)).map(lambda t: t[0] + t[1] + t[2] * 60_000_000),
            "late": st.tuples(NEAR, SHIFTS).map(lambda t: max(0, sum(t))),
            "page": st.sampled_from(["/", "/product/1", "/product/2", None]),
            "endpoint": st.sampled_from(["/a", "/b", None]),
            "response_ms": st.one_of(st.none(), st.integers(-1, 100_000)),
            "status": st.sampled_from([200, 500, None]),
        }
    ),
    min_size=1,
    max_size=60,
)
OVERLAPPING = [view for view in VIEWS.values() if isinstance(view, Windowed) and panes(view)]


def test_the_shops_overlapping_windows_are_made_of_panes():
    assert {view.name for view in OVERLAPPING} == {
        "page_views_per_five_minutes",
        "response_times",
        "trending_pages",
        "trending_products",
    }


@given(events=EVENTS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_windows_of_panes_are_those_in_which_each_row_is_counted(spark, events):
    for view in OVERLAPPING:
        rows = log_of(spark, view, events)
        one, other = (sorted(map(repr, way(view, rows).collect())) for way in (transform, in_one_step))
        assert one == other, view.name


def log_of(spark, view, events):
    """The events in the columns of the view's stream, and when they arrived."""
    columns = {**CONTRACTS[view.input].columns, "_arrival": "TIMESTAMP"}
    times = [
        {"event_time": at(event["event_time"]), "_arrival": at(event["event_time"] + event["late"])} for event in events
    ]
    rows = [[(event | time).get(name) for name in columns] for event, time in zip(events, times, strict=True)]
    return spark.createDataFrame(rows, ddl(columns))


def at(microseconds):
    return TEN + timedelta(microseconds=microseconds)
