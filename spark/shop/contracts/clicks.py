"""Clicks on an advertisement (``ad_id``) or on a search result (``query`` and ``position``, from 1)."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="clicks",
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
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "session_id"),
)
