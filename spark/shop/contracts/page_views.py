"""Pages that visitors of the shop have viewed."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="page_views",
    topic="page_views",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "page": "STRING",
        "referrer": "STRING",
        "country": "STRING",
        "device": "STRING",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "page"),
)
