"""Sensors whose last readings are too high on average, and their recovery. A single high reading raises no alert."""

from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.alerting import Alerting

READINGS = 3
# By metric: an alert begins above the first limit and ends at the second. With one limit it would begin and end all the time.
LIMITS = {"temperature": (Decimal(24), Decimal(23)), "humidity": (Decimal(65), Decimal(62))}


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is the last readings of a sensor, and since when it alerts."""
    state = state or {"last": [], "since": None}
    metric = event.data["metric"]
    state["last"] = [*state["last"], Decimal(event.data["reading"])][-READINGS:]
    average, (above, until) = sum(state["last"]) / len(state["last"]), LIMITS[metric]
    if len(state["last"]) < READINGS:
        return state, []
    row = {"event_id": event.id, "sensor_id": event.data["sensor_id"], "metric": metric}
    row["average"] = average.quantize(Decimal("0.001"), ROUND_HALF_EVEN)
    if state["since"] is None and average > above:
        state["since"] = event.time
        return state, [row | {"what": "alert", "threshold": above, "since": event.time}]
    if state["since"] is not None and average <= until:
        since, state["since"] = state["since"], None
        return state, [row | {"what": "recovery", "threshold": until, "since": since}]
    return state, []


VIEW = Keyed(
    name="sensor_alerts",
    description="A sensor's last three readings are too high on average, or no longer are.",
    inputs=(
        Input(
            "sensors",
            "concat(sensor_id, '/', metric)",
            ("sensor_id", "metric", "reading"),
            where=f"metric IN ({', '.join(repr(metric) for metric in LIMITS)})",
        ),
    ),
    process=process,
    columns={
        "event_id": "STRING",
        "sensor_id": "STRING",
        "metric": "STRING",
        "what": "STRING",
        "average": "DECIMAL(9,3)",
        "threshold": "DECIMAL(9,3)",
        "since": "TIMESTAMP",
    },
    column_descriptions={
        "event_id": "The reading at which the alert began or ended.",
        "what": "alert or recovery.",
        "average": "The average of the last three readings, in the unit of the metric.",
        "threshold": "The limit: an alert begins above the higher one, and ends at the lower one.",
        "since": "When the alert began (UTC).",
    },
    key=("event_id",),
    allowed_lateness=timedelta(seconds=10),
    alerts=Alerting(id=("event_id",), key="sensor_id"),
)
