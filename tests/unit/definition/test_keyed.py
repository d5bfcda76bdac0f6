"""A machine gives the same rows however its events are cut into calls."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lockstep.contracts import CONTRACTS
from lockstep.definition import Event, Input, Keyed, states
from lockstep.definition.keyed import advance

START = datetime(2026, 1, 1, tzinfo=UTC)
GAP = timedelta(seconds=10)


def process(state, event):
    count = state["count"] if state else 0
    return {"count": count + 1, "last": event.time}, [{"what": "event", "n": count + 1}]


def on_timer(state, at):
    return None, [{"what": "gone", "n": state["count"]}]


VIEW = Keyed(
    name="test",
    columns={"what": "STRING", "n": "BIGINT"},
    key=("at", "n"),
    allowed_lateness=timedelta(seconds=5),
    inputs=(Input("page_views", "user_id", ("page",)),),
    process=process,
    timer=lambda state: state["last"] + GAP,
    on_timer=on_timer,
)


def at(second):
    return START + timedelta(seconds=second)


@given(st.lists(st.integers(0, 100)), st.lists(st.integers(0, 120)))
def test_wherever_a_stream_is_cut_the_rows_are_the_same(seconds, cuts):
    events = sorted(Event(at(s), str(n), "page_views", {}) for n, s in enumerate(seconds))
    _, whole = advance(VIEW, None, events, at(200))
    state, pieces = None, []
    for low, high in zip([0, *sorted(cuts)], [*sorted(cuts), 200], strict=True):
        part = [e for e in events if at(low) <= e.time < at(high)]
        state, rows = advance(VIEW, states.loads(states.dumps(state)), part, at(high))
        pieces += rows
    assert pieces == whole


def test_a_deadline_passes_before_what_happens_at_that_very_instant():
    events = [Event(at(0), "a", "page_views", {}), Event(at(10), "b", "page_views", {})]
    _, rows = advance(VIEW, None, events, at(20))
    assert [(row["what"], row["n"]) for row in rows] == [("event", 1), ("gone", 1), ("event", 1)]


def test_a_view_that_may_have_to_wait_for_a_registry_shares_no_job(monkeypatch):
    assert VIEW.may_share
    framed = replace(CONTRACTS["page_views"], format="avro", wire_format="confluent")
    monkeypatch.setitem(CONTRACTS, "page_views", framed)
    assert not VIEW.may_share
