"""Requests that the shop's web server has answered. ``response_ms`` is the time it took, in milliseconds."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT

CONTRACT = Contract(
    name="requests",
    description="Requests that the shop's web server has answered.",
    topic="requests",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "endpoint": "STRING",
        "method": "STRING",
        "status": "INT",
        "response_ms": "INT",
    },
    column_descriptions={
        **EVENT,
        "endpoint": "The first part of the path, such as /product.",
        "method": "The HTTP method.",
        "status": "The HTTP status; 500 and above are errors of the shop.",
        "response_ms": "How long the answer took, in milliseconds.",
    },
    key=("endpoint",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "endpoint", "status", "response_ms"),
)
