"""Readings of the warehouse's sensors, in degrees Celsius or per cent. They are strings in the JSON, so that they stay exact."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT

CONTRACT = Contract(
    name="sensors",
    description="Readings of the warehouse's sensors.",
    topic="sensors",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "sensor_id": "STRING",
        "metric": "STRING",
        "reading": "DECIMAL(9,3)",
    },
    column_descriptions={
        **EVENT,
        "sensor_id": "The sensor, such as sensor-01.",
        "metric": "What it measures: temperature or humidity.",
        "reading": "What it measured: degrees Celsius for temperature, per cent for humidity.",
    },
    key=("sensor_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "sensor_id", "reading"),
)
