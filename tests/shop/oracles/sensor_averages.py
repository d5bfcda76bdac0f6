"""Each minute of each sensor; a reading counts when it arrived within ten minutes."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.windows import payloads_by_window

MINUTE = timedelta(minutes=1)


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every minute of every sensor and metric."""
    groups = payloads_by_window(records, "sensors", 600, MINUTE, MINUTE, lambda one: (one["sensor_id"], one["metric"]))
    return [
        {"window_start": start, "window_end": start + MINUTE, "sensor_id": sensor, "metric": metric}
        | _measures([Decimal(str(one["reading"])) for one in readings])
        for (start, (sensor, metric)), readings in groups.items()
    ]


def _measures(readings: list[Decimal]) -> dict[str, Any]:
    average = (sum(readings) / len(readings)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
    return {"readings": len(readings), "average": average, "lowest": min(readings), "highest": max(readings)}
