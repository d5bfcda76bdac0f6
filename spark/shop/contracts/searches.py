"""Searches of visitors, with the number of products that were found."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="searches",
    topic="searches",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "query": "STRING",
        "results": "INT",
        "country": "STRING",
        "device": "STRING",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "session_id", "query"),
)
