"""Requests of an hour, every five minutes, by endpoint. The bounds of the buckets are counted up from 0."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from tests.shop.oracles.record import Record
from tests.shop.oracles.windows import payloads_by_window

SIZE, SLIDE = timedelta(hours=1), timedelta(minutes=5)


def bounds() -> list[int]:
    """The lower bounds of all buckets: one each up to 32, then sixteen between a power of two and the next."""
    lower = list(range(32))
    width = 2
    while lower[-1] < 2**31:
        lower += [lower[-1] + (width // 2) + step * width for step in range(16)]
        width *= 2
    return lower


BOUNDS = bounds()


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every window of every endpoint that had a request in it."""
    groups = payloads_by_window(records, "requests", 30, SIZE, SLIDE, lambda request: request["endpoint"])
    return [
        {"window_start": start, "window_end": start + SIZE, "endpoint": endpoint} | measures(requests)
        for (start, endpoint), requests in groups.items()
    ]


def measures(requests: list[dict[str, Any]]) -> dict[str, Any]:
    """The measures of some requests."""
    times = sorted(max(0, one["response_ms"]) for one in requests)
    errors = sum(one["status"] >= 500 for one in requests)
    histogram = sorted(Counter(bisect_right(BOUNDS, time) - 1 for time in times).items())
    return {
        "requests": len(times),
        "errors": errors,
        "error_rate": _rounded(Decimal(errors) / len(times), 6),
        "mean_ms": _rounded(Decimal(sum(times)) / len(times), 3),
        **{f"p{percent}_ms": middle(times, percent) for percent in (50, 95, 99)},
        "histogram": [{"from_ms": BOUNDS[n], "to_ms": BOUNDS[n + 1], "count": count} for n, count in histogram],
    }


def middle(times: list[int], percent: int) -> Decimal:
    """The middle of the bucket that contains the exact quantile (nearest rank) of the sorted times."""
    exact = times[-(-percent * len(times) // 100) - 1]
    bucket = bisect_right(BOUNDS, exact) - 1
    return Decimal(BOUNDS[bucket] + BOUNDS[bucket + 1] - 1) / 2


def _rounded(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
