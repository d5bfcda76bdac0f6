"""sensor_alerts: the average of three readings crosses a limit, and comes back."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import sensor_alerts as oracle
from tests.shop.unit.views.machines import at, batch, fed, happened, without_at

from lockstep.definition.registry import VIEWS

VIEW = VIEWS["sensor_alerts"]
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


def readings(*found):
    return {
        "sensors": [
            happened("sensors", n, s, delay, sensor_id=who, metric=what, reading=f"{value // 1000}.{value % 1000:03d}")
            for n, (who, what, value, s, delay) in enumerate(found)
        ]
    }


@given(st.lists(READINGS, max_size=40))
def test_the_rows_are_the_oracles(found):
    records = readings(*found)
    assert without_at(batch(VIEW, fed(VIEW, keys, records, str), END)) == without_at(oracle.rows(records))


def test_one_stray_reading_does_not_alert_and_a_warm_hour_does_until_it_has_cooled():
    values = (20, 30, 20, 21, 26, 26, 24, 23, 22, 22)
    records = readings(*(("s1", "temperature", value * 1000, n * 1800, 1) for n, value in enumerate(values)))
    rows = batch(VIEW, fed(VIEW, keys, records, str), at(30_000))
    assert [(row["what"], row["at"], row["average"], row["since"]) for row in rows] == [
        ("alert", at(5 * 1800), Decimal("24.333"), at(5 * 1800)),
        ("recovery", at(7 * 1800 + 1800), Decimal("23.000"), at(5 * 1800)),
    ]
