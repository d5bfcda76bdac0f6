"""Searches that customers save, to be told of what is found later, or remove again. A search is known by its text."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="saved_searches",
    topic="saved_searches",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "query": "STRING",
        "saved": "BOOLEAN",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "query", "saved"),
)
