"""A map state is a dict, of which an event reads and writes what it touches: its price does not grow with its entries."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.stored_machine import StoredMachine

from lockstep.definition import Event, Input, Keyed, MapState
from lockstep.definition.check import problems
from lockstep.definition.keyed import advance
from lockstep.definition.machine import MachineFailed

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
ALL = "all"
KEYS = st.text("abcdefghijklmnop", min_size=1, max_size=2)


def view(**changed):
    """Counts pages: an event adds one to its page, takes a page away, tells all counts, or ends the machine."""

    def process(counts, event):
        counts = counts or {"of_page": {}}
        page, what = event.data["page"], event.data["what"]
        if what == "end":
            return None, []
        if what == ALL:
            return counts, [{"page": name, "count": n} for name, (n, _) in sorted(counts["of_page"].items())]
        n, _ = counts["of_page"].pop(page, (0, None))
        if what == "add":
            counts["of_page"][page] = [n + 1, event.time]
        return counts, [{"page": page, "count": n}]

    def touched(event):
        return {"add": [event.data["page"]], "take": [event.data["page"]], "end": []}.get(event.data["what"])

    declared = {
        "name": "counted",
        "description": "Counts.",
        "inputs": (Input("page_views", "user_id", ("page",)),),
        "process": process,
        "map_state": MapState("of_page", touched),
        "columns": {"page": "STRING", "count": "INT"},
        "key": ("page",),
        "allowed_lateness": timedelta(0),
    }
    return Keyed(**declared | changed)


def event(number, page="a", what="add"):
    return Event(START + timedelta(seconds=number), f"{number:06}", "page_views", {"page": page, "what": what})


@given(
    st.lists(st.tuples(KEYS, st.sampled_from(["add"] * 12 + ["take"] * 3 + [ALL, "end"])), max_size=120),
    st.sets(st.integers(0, 120)),
)
def test_it_is_a_dict_however_the_events_are_divided_among_calls(touches, cuts):
    events = [event(number, page, what) for number, (page, what) in enumerate(touches)]
    _, expected = advance(view(), None, events, None)
    machine, found, waiting = StoredMachine(view()), [], []
    for number, one in enumerate(events):
        waiting.append(one)
        if number in cuts or one is events[-1]:
            found += machine.process(*waiting)
            waiting = []
    assert found == expected


def test_what_an_event_reads_and_writes_does_not_grow_with_the_entries():
    machine, moved = StoredMachine(view()), []
    for number in range(5_000):
        machine.process(event(number, f"page {number}"))
        moved.append(machine.moved)
    assert machine.size > 100_000
    # Where the number of buckets is doubled, all are written: so rarely that an event pays for a few entries.
    assert sum(moved[4_000:]) / 1_000 < 1.5 * sum(moved[400:800]) / 400
    assert sorted(moved)[-50] < 6_000


def test_a_machine_that_ends_leaves_nothing():
    machine = StoredMachine(view())
    for number in range(200):
        machine.process(event(number, f"page {number}"))
    machine.process(event(201, what="end"))
    assert machine.size < 100
    assert machine.process(event(202, what=ALL)) == []


@pytest.mark.parametrize("entries", [3, 200])
def test_a_machine_that_ends_and_begins_again_in_one_call_has_none_of_its_old_entries(entries):
    machine = StoredMachine(view())
    for number in range(entries):
        machine.process(event(number, f"page {number}"))
    machine.process(event(entries, what="end"), event(entries + 1, "new"))
    assert machine.process(event(entries + 2, what=ALL)) == [
        {"at": START + timedelta(seconds=entries + 2), "page": "new", "count": 1}
    ]


def test_an_entry_that_is_over_leaves_with_its_bucket():
    old = MapState("of_page", view().map_state.touched, lambda entry, one: entry[1] <= one.time - DAY)
    machine, sizes = StoredMachine(view(map_state=old)), []
    for hour in range(24 * 40):
        machine.process(event(3_600 * hour, f"page {hour}"))
        sizes.append(machine.size)
    assert max(sizes[480:]) <= 1.1 * max(sizes[240:480])


def test_a_view_that_writes_what_it_does_not_touch_is_told_so():
    machine = StoredMachine(view(map_state=MapState("of_page", lambda _: ())))
    with pytest.raises(MachineFailed, match=r"of_page\['a'\], which touched does not name"):
        machine.process(event(0))


def test_a_timer_has_no_map_state():
    refused = problems(view(timer=lambda _: None, on_timer=lambda state, _: (state, [])))
    assert [reason for reason in refused if "map_state" in reason]
    assert [reason for reason in problems(view()) if "map_state" in reason] == []
