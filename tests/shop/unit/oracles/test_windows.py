"""The oracles of the windowed views give what was counted by hand. The views give it in tests/shop/integration/views."""

from datetime import timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import (
    page_views_per_five_minutes,
    page_views_per_minute,
    response_times,
    sampled_traffic,
    sensor_averages,
    trending_pages,
    trending_products,
)
from tests.shop.oracles.windows import windows
from tests.support.records import START, event_record

MINUTE = timedelta(minutes=1)


def at(minute, second=0):
    return START + timedelta(minutes=minute, seconds=second)


def shown(start):
    return f"{start:%H:%M:%S}"


def count(events, size, slide):
    """How many of the events lie in each window."""
    starts = [start for event in events for start in windows(event, size, slide)]
    return {shown(start): starts.count(start) for start in sorted(set(starts))}


def test_tumbling_60s():
    events = [at(0, 15), at(0, 45), at(1, 10), at(1, 50), at(2, 20)]
    assert count(events, MINUTE, MINUTE) == {"10:00:00": 2, "10:01:00": 2, "10:02:00": 1}


def test_hopping_60s_every_30s():
    counts = count([at(0, 15), at(0, 45), at(1, 10)], MINUTE, MINUTE / 2)
    assert counts == {"09:59:30": 1, "10:00:00": 2, "10:00:30": 2, "10:01:00": 1}


def test_hopping_with_gaps():
    events = [at(minute) for minute in (0, 5, 6, 9, 10, 15, 16, 20)]
    assert count(events, 6 * MINUTE, 10 * MINUTE) == {"10:00:00": 2, "10:10:00": 2, "10:20:00": 1}
    assert [m for m in (6, 9, 16) if windows(at(m), 6 * MINUTE, 10 * MINUTE)] == []


def test_hopping_6_every_2():
    assert {len(windows(at(minute), 6 * MINUTE, 2 * MINUTE)) for minute in range(60)} == {3}


def test_tumbling_6():
    assert {len(windows(at(minute), 6 * MINUTE, 6 * MINUTE)) for minute in range(60)} == {1}


def test_hopping_5_every_1():
    nine = START - timedelta(hours=1)
    assert {start for start in windows(nine + 4 * MINUTE, 5 * MINUTE, MINUTE) if start >= nine} == {
        nine + n * MINUTE for n in range(5)
    }
    last = nine + timedelta(minutes=5, seconds=59)
    assert windows(last, 5 * MINUTE, MINUTE)[-1] == nine + MINUTE


def sent(stream, *values):
    """Valid records that arrived when they happened."""
    required = {"user_id": "u1"} if stream == "page_views" else {}
    records = [event_record(stream, n, minute * 60, 0, **required, **value) for n, (minute, value) in enumerate(values)]
    return {stream: records}


def test_page_views_per_minute_and_per_five_minutes_as_counted_by_hand():
    views = sent("page_views", (0, {"page": "/"}), (4, {"page": "/"}), (4, {"page": "/cart"}))
    per_minute = [(shown(r["window_start"]), r["page"], r["views"]) for r in page_views_per_minute.rows(views)]
    assert sorted(per_minute) == [("10:00:00", "/", 1), ("10:04:00", "/", 1), ("10:04:00", "/cart", 1)]
    per_five = {(shown(r["window_start"]), r["page"]): r["views"] for r in page_views_per_five_minutes.rows(views)}
    assert per_five[("09:56:00", "/")] == 1
    assert per_five[("10:00:00", "/")] == 2
    assert per_five[("10:04:00", "/cart")] == 1
    assert len(per_five) == 9 + 5


def test_sampled_traffic_as_counted_by_hand():
    views = sent("page_views", *((minute, {"page": "/"}) for minute in (0, 5, 6, 9, 10, 15, 16, 20)))
    assert [(shown(r["window_start"]), r["views"]) for r in sampled_traffic.rows(views)] == [
        ("10:00:00", 2),
        ("10:10:00", 2),
        ("10:20:00", 1),
    ]


def test_trending_pages_and_trending_products_rank_by_views_and_then_by_name():
    pages = ["/product/B", "/product/A", "/", "/", "/cart"]
    views = sent("page_views", *((0, {"page": page}) for page in pages))
    ranks = [(r["rank"], r["page"], r["views"]) for r in trending_pages.rows(views) if r["window_start"] == START]
    assert ranks == [(1, "/", 2), (2, "/cart", 1), (3, "/product/A", 1), (4, "/product/B", 1)]
    ranks = [(r["rank"], r["product_id"]) for r in trending_products.rows(views) if r["window_start"] == START]
    assert ranks == [(1, "A"), (2, "B")]


def test_sensor_averages_as_computed_by_hand():
    readings = sent("sensors", *((0, {"sensor_id": "s", "metric": "m", "reading": r}) for r in ("1", "1", "2")))
    (row,) = sensor_averages.rows(readings)
    assert (row["readings"], row["average"], row["highest"]) == (3, Decimal("1.333333"), Decimal(2))


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=200))
def test_a_quantile_of_response_times_is_within_its_stated_error(times):
    measures = response_times.measures([{"response_ms": time, "status": 200} for time in times])
    for percent in (50, 95, 99):
        exact = sorted(times)[-(-percent * len(times) // 100) - 1]
        assert abs(measures[f"p{percent}_ms"] - exact) <= (Decimal(exact) * Decimal("0.032") if exact >= 32 else 0)
    assert sum(bucket["count"] for bucket in measures["histogram"]) == len(times)
