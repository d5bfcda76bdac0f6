"""sensor_alerts: the average of three readings crosses a limit, and comes back."""

from decimal import Decimal
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import sensor_alerts as oracle
from tests.shop.unit.views.feed import assert_every_way_gives, batch, live, route
from tests.support.records import at, event_record

from shop.views.sensor_alerts import VIEW

END = at(10_000)
READINGS = st.tuples(
    st.sampled_from(["s1", "s2"]),
    st.sampled_from(["temperature", "humidity", "noise"]),
    st.integers(20_000, 28_000) | st.integers(58_000, 68_000),
    st.integers(0, 40),
    st.floats(0, 12),
)


def keys(stream, row):
    return [f"{row['sensor_id']}/{row['metric']}"] if row["metric"] != "noise" else []


def readings(*measured):
    return {
        "sensors": [
            event_record(
                "sensors", n, s, delay, sensor_id=who, metric=what, reading=f"{value // 1000}.{value % 1000:03d}"
            )
            for n, (who, what, value, s, delay) in enumerate(measured)
        ]
    }


@given(st.lists(READINGS, max_size=40), st.randoms(use_true_random=False))
def test_the_rows_are_the_oracles(measured, dice: Random):
    records = readings(*measured)
    routed = route(VIEW, keys, records)
    assert_every_way_gives(oracle.rows(records), VIEW, routed, END, dice)


def test_one_high_reading_raises_no_alert_and_a_warm_hour_raises_one_until_it_has_cooled():
    values = (20, 30, 20, 21, 26, 26, 24, 23, 22, 22)
    records = readings(*(("s1", "temperature", value * 1000, n * 1800, 1) for n, value in enumerate(values)))
    rows = batch(VIEW, route(VIEW, keys, records), at(30_000))
    assert [(row["what"], row["at"], row["average"], row["since"]) for row in rows] == [
        ("alert", at(5 * 1800), Decimal("24.333"), at(5 * 1800)),
        ("recovery", at(7 * 1800 + 1800), Decimal("23.000"), at(5 * 1800)),
    ]


def test_a_reading_that_waits_for_others_on_time_is_processed_in_the_end():
    values = (20, 20, 26, 30)
    records = readings(*(("s1", "temperature", value * 1000, n * 10, 1) for n, value in enumerate(values)))
    rows = live(VIEW, route(VIEW, keys, records), END, cuts=[35])
    assert [(row["what"], row["at"]) for row in rows] == [("alert", at(30))]
