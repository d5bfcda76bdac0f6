"""Searches of visitors, with the number of products that were found."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT, PLACE, VISITOR

CONTRACT = Contract(
    name="searches",
    description="Searches of visitors.",
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
    column_descriptions={
        **EVENT,
        **VISITOR,
        **PLACE,
        "query": "What the visitor typed.",
        "results": "How many products were found.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "session_id", "query"),
    subject="user_id",
)
