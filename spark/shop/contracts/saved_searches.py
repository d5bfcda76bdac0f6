"""Customers save a search, or remove it (``saved`` is false). The text of the query identifies the search."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT

CONTRACT = Contract(
    name="saved_searches",
    description="Customers save a search, or remove it.",
    topic="saved_searches",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "query": "STRING",
        "saved": "BOOLEAN",
    },
    column_descriptions={
        **EVENT,
        "user_id": "The customer: user_id of users.",
        "query": "The words of the search. They identify it among those of the customer.",
        "saved": "True: it is saved from now on. False: it is removed.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "query", "saved"),
    subject="user_id",
)
