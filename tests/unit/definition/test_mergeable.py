"""Measures that are made of parts: their SQL, and the views whose windows are made of panes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lockstep.definition.mergeable import combined, mergeable, sql_of
from lockstep.definition.panes import panes
from lockstep.definition.registry import VIEWS
from lockstep.definition.windows import COUNT

MINUTE = timedelta(minutes=1)
SUM, HIGHEST = mergeable("sum(x)", "sum({})"), mergeable("max(x)", "max({})")
HOPPING = VIEWS["page_views_per_five_minutes"]


def test_a_measure_over_others_has_the_parts_of_all_in_their_order():
    mean = combined("{0} / {1}", SUM, COUNT)
    both = combined("{0} - ({1})", HIGHEST, mean)
    assert sql_of(both) == "max(x) - (sum(x) / count(*))"
    assert [of_rows for of_rows, _ in both.parts] == ["max(x)", "sum(x)", "count(*)"]
    assert both.merged(["a", "b", "c"]) == "max(a) - (sum(b) / sum(c))"


def test_a_view_is_the_windows_over_the_panes_of_its_rows():
    of_rows, of_panes = panes(HOPPING)
    assert (of_rows.size, of_rows.slide, of_rows.where, of_rows.on_time) == (MINUTE, MINUTE, "true", HOPPING.on_time)
    assert of_rows.measures == {"_views_0": "count(*)"}
    assert (of_panes.size, of_panes.slide) == (5 * MINUTE, MINUTE)
    assert of_panes.measures == {"views": "sum(`_views_0`)"}
    assert of_panes.on_time == "true", "a row that is late is in no pane"


@pytest.mark.parametrize(
    "declared",
    [
        {"size": MINUTE},
        {"slide": 10 * MINUTE},
        {"slide": 3 * MINUTE},
        {"measures": {"views": "count(*)"}},
        {"measures": {"views": COUNT, "users": "count(DISTINCT user_id)"}},
    ],
)
def test_no_panes_where_windows_do_not_overlap_or_are_no_whole_number_of_them_or_a_measure_has_no_parts(declared):
    assert panes(replace(HOPPING, **declared)) is None
