"""Advertisements shown to visitors."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT, PLACE, VISITOR

CONTRACT = Contract(
    name="impressions",
    description="Advertisements that were shown to visitors.",
    topic="impressions",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "ad_id": "STRING",
        "product_id": "STRING",
        "placement": "STRING",
        "country": "STRING",
        "device": "STRING",
    },
    column_descriptions={
        **EVENT,
        **VISITOR,
        **PLACE,
        "ad_id": "The advertisement that was shown.",
        "product_id": "The product that it advertises.",
        "placement": "Where on the page it was: top, side or footer.",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "ad_id"),
    subject="user_id",
)
