"""User sessions: what a user does with less than ten minutes between, and whether it ended in a payment.

A session ends at its last event, and is a row ten minutes later: a gap of exactly ten minutes begins a new one, as with Spark's
``session_window``. Payments count as activity, so a session may have no page at all.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

GAP = timedelta(minutes=10)
_MILLISECOND = timedelta(milliseconds=1)


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """One more event of the open session, or the first of a new one."""
    before = state or {"user_id": event.data["user_id"], "start": event.time, "pages": 0, "converted": False}
    seen, paid = event.stream == "page_views", event.stream == "payments"
    now = {"last": event.time, "pages": before["pages"] + seen, "converted": before["converted"] or paid}
    return before | now, []


def timer(state: State) -> datetime:
    """The session is over when nothing has happened for the gap."""
    end: datetime = state["last"]
    return end + GAP


def on_timer(state: State, _: datetime) -> tuple[State, list[Row]]:
    """The session as a row."""
    row = {
        "user_id": state["user_id"],
        "session_start": state["start"],
        "session_end": state["last"],
        "pages": state["pages"],
        "duration_ms": (state["last"] - state["start"]) // _MILLISECOND,
        "converted": state["converted"],
    }
    return None, [row]


VIEW = Keyed(
    name="user_sessions",
    columns={
        "user_id": "STRING",
        "session_start": "TIMESTAMP",
        "session_end": "TIMESTAMP",
        "pages": "BIGINT",
        "duration_ms": "BIGINT",
        "converted": "BOOLEAN",
    },
    key=("user_id", "session_start"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("page_views", "user_id", ("user_id",)), Input("payments", "user_id", ("user_id",))),
    process=process,
    timer=timer,
    on_timer=on_timer,
)
