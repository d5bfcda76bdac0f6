"""Customers save a search, or remove it (``saved`` is false). The text of the query identifies the search."""

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
