"""A view that cannot run is refused by name, with the reason and the fix, before anything starts."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lockstep.definition import Input
from lockstep.definition.check import problems
from lockstep.definition.registry import VIEWS, chosen
from lockstep.errors import ViewRefused

WINDOWED = VIEWS["page_views_per_minute"]
KEYED = VIEWS["orders_in_eight_minutes"]
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_every_view_of_ours_is_sound(view):
    assert problems(view) == []


BAD = {
    "the key is not one of its columns": (
        replace(WINDOWED, key=("window_start", "url")),
        "the key url is not one of its columns (window_start, window_end, page, views): add it, or leave it out",
    ),
    "it has no key": (replace(WINDOWED, key=()), "it has no key"),
    "it describes a column that is not there": (
        replace(WINDOWED, column_descriptions={"url": "The address."}),
        "it describes url, which is not one of its columns (window_start, window_end, page, views): correct the name",
    ),
    "an approximate column is not there": (
        replace(WINDOWED, approximate={"views": "error"}),
        "its approximate column error is not one of its columns: declare it",
    ),
    "its key is approximate": (
        replace(WINDOWED, approximate={"page": "views"}),
        "its key page is approximate, so no row could be compared with another",
    ),
    "its watermark is missing": (replace(WINDOWED, allowed_lateness=None), "it has no watermark: set allowed_lateness"),
    "its watermark runs backwards": (replace(WINDOWED, allowed_lateness=-SECOND), "it has no watermark"),
    "nobody knows its policy": (replace(WINDOWED, policy="drop"), "choose ignore, correct, side_output"),
    "it corrects without a limit": (replace(WINDOWED, policy="correct"), "set correct_within above allowed_lateness"),
    "its second limit is the shorter one": (
        replace(WINDOWED, policy="correct", correct_within=SECOND),
        "set correct_within above allowed_lateness",
    ),
    "it has a second limit for nothing": (
        replace(WINDOWED, correct_within=timedelta(1)),
        "leave it out, or choose correct",
    ),
    "final rows cannot be corrected": (
        replace(KEYED, policy="correct", correct_within=timedelta(1)),
        "choose ignore or side_output",
    ),
    "its stream does not exist": (replace(WINDOWED, input="page_vues"), "there is no stream page_vues: name one of"),
    "its time does not exist": (replace(WINDOWED, event_time="when"), "set event_time to event_time"),
    "windows over a table's changes": (replace(WINDOWED, input="orders"), "read it with a Keyed view"),
    "its rows do not say their window": (
        replace(WINDOWED, columns={"page": "STRING"}),
        "declare the column window_start",
    ),
    "one row for all windows": (replace(WINDOWED, key=("page",)), "add window_start to the key"),
    "its windows are empty": (replace(WINDOWED, size=timedelta(0)), "set size and slide above zero"),
    "its state is dropped while rows still count": (
        replace(WINDOWED, policy="correct", correct_within=timedelta(hours=3)),
        "set state_kept above that",
    ),
    "its name cannot be a table's": (replace(WINDOWED, name="x; DROP TABLE y"), "use small letters"),
    "it reads nothing": (replace(KEYED, inputs=()), "it reads nothing"),
    "it reads a column that is not there": (
        replace(KEYED, inputs=(Input("payments", "country", ("cuntry",)),)),
        "payments has no column cuntry",
    ),
    "no machine gets its rows": (replace(KEYED, inputs=(Input("payments"),)), "set either key or keys of its input"),
    "two expressions say which machines get its rows": (
        replace(KEYED, inputs=(Input("payments", "country", keys="array(country)"),)),
        "set either key or keys of its input",
    ),
    "a change without a time": (
        replace(KEYED, inputs=(Input("users", "user_id", ("name",)),)),
        "set the input's time to _committed_at",
    ),
    "a timer at which nothing happens": (
        replace(KEYED, on_timer=type(KEYED).__dataclass_fields__["on_timer"].default),
        "give on_timer too",
    ),
    "it depends on nothing": (replace(KEYED, lookback=timedelta(0)), "set lookback above zero"),
}


@pytest.mark.parametrize(("view", "reason"), BAD.values(), ids=list(BAD))
def test_a_view_is_refused_when(view, reason):
    assert any(reason in problem for problem in problems(view)), problems(view)


def test_what_cannot_run_is_not_among_the_views_that_are_started(monkeypatch):
    monkeypatch.setitem(VIEWS, "bad", replace(WINDOWED, name="bad", key=("url",)))
    assert WINDOWED in chosen("page_views_per_minute")
    with pytest.raises(ViewRefused, match="The view bad is refused, and nothing of it was started:\n  the key url"):
        chosen("page_views_per_minute, bad")
