"""Alerts of sensors: the moving averages of all readings, and where they cross the limits."""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed

LIMITS = {"temperature": (24, 23), "humidity": (65, 62)}


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every alert and recovery."""
    by_sensor = defaultdict(list)
    for record in on_time(accepted(records["sensors"]), 10):
        value = record.value or {}
        if value.get("metric") in LIMITS:
            reading = Fraction(value["reading"])
            by_sensor[value["sensor_id"], value["metric"]].append(
                (parsed(value["event_time"]), value["event_id"], reading)
            )
    return [
        row for (sensor, metric), all_of_it in by_sensor.items() for row in _rows(sensor, metric, sorted(all_of_it))
    ]


def _rows(sensor: str, metric: str, readings: list[tuple[Any, str, Fraction]]) -> list[dict[str, Any]]:
    above, until = LIMITS[metric]
    result, since = [], None
    for n in range(2, len(readings)):
        average = sum(reading for _, _, reading in readings[n - 2 : n + 1]) / 3
        at, event_id, _ = readings[n]
        row = {"event_id": event_id, "sensor_id": sensor, "metric": metric, "average": _rounded(average)}
        if since is None and average > above:
            since = at
            result.append(row | {"what": "alert", "threshold": Decimal(above), "since": since})
        elif since is not None and average <= until:
            result.append(row | {"what": "recovery", "threshold": Decimal(until), "since": since})
            since = None
    return result


def _rounded(number: Fraction) -> Decimal:
    return Decimal(round(number * 1000)) / 1000
