"""The plan: what it replaces in silver, and which intervals it locks."""

from datetime import UTC, datetime, timedelta

from lockstep.control.intervals import ALWAYS
from lockstep.ledger.ranges import Range
from lockstep.replay.plan import Part, Plan, Target, intervals_of
from lockstep.replay.stages import Shadowed, ShadowedView

HOUR = (datetime(2026, 11, 10, 10, tzinfo=UTC), datetime(2026, 11, 10, 11, tzinfo=UTC))
WIDER = (HOUR[0], HOUR[1] + timedelta(hours=1))
VIEW = "page_views_per_minute"


def planned(layers=("gold",), arrived=HOUR, span=(None, None), end=9):
    part = Part(stream="page_views", ranges=(Range("page_views", "i", 0, 0, end),), arrived=arrived, source="any")
    return Plan(layers=layers, parts=(part,), targets=(Target(view=VIEW, low=span[0], high=span[1]),))


def test_silver_is_replaced_only_where_it_is_replayed_and_has_rows():
    assert planned(("silver", "gold")).silver_part("page_views")
    assert planned(("silver", "gold")).silver_part("payments") is None
    assert planned(("silver", "gold"), end=0).silver_part("page_views") is None
    assert planned(("gold",)).silver_part("page_views") is None


def test_every_table_that_is_written_is_locked():
    assert intervals_of(planned(span=HOUR)) == {f"gold.{VIEW}": HOUR}
    assert intervals_of(planned(("bronze", "silver", "gold"), span=HOUR)) == {
        "bronze.page_views": HOUR,
        "silver.page_views": HOUR,
        f"gold.{VIEW}": HOUR,
    }


def test_a_table_is_locked_as_a_whole_until_its_interval_is_known():
    plan = planned(("silver", "gold"), arrived=None)
    assert intervals_of(plan) == {"silver.page_views": ALWAYS, f"gold.{VIEW}": ALWAYS}
    view = ShadowedView(span=WIDER, version=1, ranges=())
    shadowed = Shadowed(bronze={}, silver={}, gold={VIEW: view}, code_version="c", seconds=1)
    assert intervals_of(plan, shadowed)[f"gold.{VIEW}"] == WIDER
