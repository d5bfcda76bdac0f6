"""Customers follow a product, or stop following it (``follows`` is false)."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="follows",
    topic="follows",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "product_id": "STRING",
        "follows": "BOOLEAN",
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "product_id", "follows"),
)
