"""Requests that the shop's web server has answered. ``response_ms`` is the time it took, in milliseconds."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="requests",
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
    key=("endpoint",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "endpoint", "status", "response_ms"),
)
