"""User sessions: the events of a user with less than ten minutes between them, and whether there was a payment.

A session ends at its last event, and becomes a row ten minutes later. After a gap of exactly ten minutes a new session begins, as
with Spark's ``session_window``. Payments count as activity, so a session may have no page view.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

GAP = timedelta(minutes=10)
_MILLISECOND = timedelta(milliseconds=1)


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the open session. The event belongs to it, or begins a new one."""
    before = state or {"user_id": event.data["user_id"], "start": event.time, "pages": 0, "converted": False}
    viewed, paid = event.stream == "page_views", event.stream == "payments"
    now = {"last": event.time, "pages": before["pages"] + viewed, "converted": before["converted"] or paid}
    return before | now, []


def timer(state: State) -> datetime:
    """When the gap after the last event is over."""
    end: datetime = state["last"]
    return end + GAP


def on_timer(state: State, _: datetime) -> tuple[State, list[Row]]:
    """The session has ended: it becomes a row."""
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
    description="Visits: page views and payments of a user with less than ten minutes between them.",
    columns={
        "user_id": "STRING",
        "session_start": "TIMESTAMP",
        "session_end": "TIMESTAMP",
        "pages": "BIGINT",
        "duration_ms": "BIGINT",
        "converted": "BOOLEAN",
    },
    column_descriptions={
        "session_start": "When the first event of the visit happened (UTC).",
        "session_end": "When the last one happened (UTC).",
        "pages": "How many pages the user viewed.",
        "duration_ms": "From the first event to the last, in milliseconds.",
        "converted": "Whether the user paid.",
    },
    key=("user_id", "session_start"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("page_views", "user_id", ("user_id",)), Input("payments", "user_id", ("user_id",))),
    process=process,
    timer=timer,
    on_timer=on_timer,
)
