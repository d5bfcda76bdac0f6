"""Advertisements shown to visitors."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="impressions",
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
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "ad_id"),
)
