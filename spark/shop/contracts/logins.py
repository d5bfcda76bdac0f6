"""Attempts to log in, successful or not."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT, VISITOR

CONTRACT = Contract(
    name="logins",
    description="Attempts to log in, successful or not.",
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
    column_descriptions={
        **EVENT,
        **VISITOR,
        "success": "Whether the login succeeded.",
        "country": "The country that the attempt came from.",
        "device": "mobile, desktop or tablet.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "success"),
    subject="user_id",
)
