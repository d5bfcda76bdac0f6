"""response_times gives what was computed by hand, and its quantiles keep their error bound."""

from decimal import Decimal
from random import Random

from tests.shop.integration.views.frames import start, transformed

from shop.views.response_times import VIEW

# What the view promises: exact below 32 ms, else off by at most 3.2 %.
EXACT_BELOW, ERROR = 32, Decimal("0.032")


def hour(spark, requests):
    """The rows of the window that begins at ten, by endpoint."""
    events = [(0, {"endpoint": e, "status": s, "response_ms": ms}) for e, s, ms in requests]
    return {row["endpoint"]: row for row in transformed(spark, VIEW, events) if start(row) == "10:00"}


def test_counts_the_mean_and_the_share_of_errors_are_exact(spark):
    rows = hour(spark, [("/", 200, 10), ("/", 500, 20), ("/", 404, 31)])
    row = rows["/"]
    assert (row["requests"], row["errors"], row["error_rate"]) == (3, 1, Decimal("0.333333"))
    assert (row["mean_ms"], row["p50_ms"], row["p99_ms"]) == (Decimal("20.333"), 20, 31)
    assert [(b["from_ms"], b["to_ms"], b["count"]) for b in row["histogram"]] == [(10, 11, 1), (20, 21, 1), (31, 32, 1)]


def test_a_negative_time_counts_as_none(spark):
    assert hour(spark, [("/", 200, -5)])["/"]["p50_ms"] == 0


def test_a_quantile_is_within_its_error_bound(spark):
    dice = Random(1)
    edges = [0, 1, 31, 32, 33, 63, 64, 65, 2**20 - 1, 2**20, 2**31 - 1]
    times = {f"/{n}": [dice.choice(edges)] for n in range(20)}
    for n in range(20, 120):
        scale = dice.choice([40, 300, 5_000, 2**31 - 1])
        times[f"/{n}"] = [dice.randint(0, scale) for _ in range(dice.randint(1, 60))]
    rows = hour(spark, [(endpoint, 200, ms) for endpoint, all_of_it in times.items() for ms in all_of_it])
    assert rows.keys() == times.keys()
    for endpoint, row in rows.items():
        in_order = sorted(times[endpoint])
        for percent in (50, 95, 99):
            exact = in_order[-(-percent * len(in_order) // 100) - 1]
            error = abs(row[f"p{percent}_ms"] - exact)
            assert error <= (exact * ERROR if exact >= EXACT_BELOW else 0), (endpoint, percent, exact)
        assert sum(bucket["count"] for bucket in row["histogram"]) == len(in_order)
