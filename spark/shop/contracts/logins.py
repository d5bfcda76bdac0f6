"""Attempts to log in, successful or not."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="logins",
    topic="logins",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "success": "BOOLEAN",
        "country": "STRING",
        "device": "STRING",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "success"),
)
