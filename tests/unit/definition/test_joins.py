"""Interval joins give the pairs of a cross product, in whatever order and parts the events come."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.joins import IntervalJoin, IntervalRate, composite_key
from lockstep.definition.keyed import advance

START = datetime(2026, 1, 1, tzinfo=UTC)
WITHIN = timedelta(seconds=10)
SECONDS = st.lists(st.integers(0, 60), max_size=8)
CUTS = st.lists(st.integers(0, 80), max_size=3)


def at(second):
    return START + timedelta(seconds=second)


def machine(join):
    inputs = (Input("searches", "query"), Input("clicks", "query"))
    definition = {"inputs": inputs, "process": join.process, "timer": join.timer, "on_timer": join.on_timer}
    return Keyed(name="test", columns={}, key=(), allowed_lateness=timedelta(0), **definition)


def rows(join, lefts, rights, cuts=()):
    """All rows of the join, whose machine is called anew after each cut."""
    events = [Event(at(s), f"l{n}", "searches", {"q": "a", "who": "u", "slot": None}) for n, s in enumerate(lefts)]
    events += [Event(at(s), f"r{n}", "clicks", {"q": "a", "who": "u", "slot": n}) for n, s in enumerate(rights)]
    state, found, low = None, [], -1
    for high in [*sorted(cuts), 300]:
        part = sorted(e for e in events if at(low) <= e.time < at(high))
        state, new = advance(machine(join), state, part, at(high))
        found += new
        low = max(low, high)
    assert state is None, "nothing is kept once all is over"
    return found


PAIRS = IntervalJoin(
    "searches", WITHIN, lambda left, right, number: {"left": left.id, "right": right and right.id, "number": number}
)


@given(SECONDS, SECONDS, CUTS)
def test_a_join_has_each_pair_and_each_left_event_without_a_partner(lefts, rights, cuts):
    pairs = {
        (f"l{n}", f"r{m}") for n, left in enumerate(lefts) for m, right in enumerate(rights) if 0 <= right - left <= 10
    }
    alone = {(f"l{n}", None) for n in range(len(lefts))} - {(left, None) for left, _ in pairs}
    joined = [(row["left"], row["right"]) for row in rows(PAIRS, lefts, rights, cuts)]
    assert sorted(joined, key=str) == sorted(pairs | alone, key=str)


@given(SECONDS, SECONDS)
def test_partners_are_numbered_in_the_order_in_which_they_happened(lefts, rights):
    numbers = {}
    for row in rows(PAIRS, lefts, rights):
        numbers.setdefault(row["left"], []).append(row["number"])
    assert all(found in ([0], list(range(1, len(found) + 1))) for found in numbers.values())


@given(SECONDS, SECONDS, CUTS)
def test_a_rate_counts_the_partners_of_each_left_event_in_its_window(lefts, rights, cuts):
    size = timedelta(seconds=20)
    rate = IntervalRate(
        "searches",
        WITHIN,
        size,
        key="q",
        who="who",
        slot="slot",
        rows=lambda start, _key, found: [{"n": (start, found)}],
    )
    expected = {}
    for left in sorted(lefts):
        slots = {m for m, right in enumerate(rights) if 0 <= right - left <= 10}
        expected.setdefault(at(left - left % 20), []).append(slots)
    assert [row["n"] for row in rows(rate, lefts, rights, cuts)] == sorted(expected.items())


def test_two_pairs_of_values_never_share_a_key():
    assert composite_key("a", "b") == "length(a) || ':' || a || b"
