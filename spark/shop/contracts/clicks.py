"""Clicks on an advertisement (``ad_id``) or on a search result (``query`` and ``position``, from 1)."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT, PLACE, VISITOR

CONTRACT = Contract(
    name="clicks",
    description="Clicks on an advertisement or on a search result.",
    topic="clicks",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "ad_id": "STRING",
        "query": "STRING",
        "position": "INT",
        "product_id": "STRING",
        "country": "STRING",
        "device": "STRING",
    },
    column_descriptions={
        **EVENT,
        **VISITOR,
        **PLACE,
        "ad_id": "The advertisement that was clicked; null for a search result.",
        "query": "The search whose result was clicked, as the visitor typed it; null for an advertisement.",
        "position": "The place of the result in the list, from 1; null for an advertisement.",
        "product_id": "The product that the click led to.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "session_id"),
    subject="user_id",
)
