"""sensor_averages gives what was computed by hand."""

from decimal import Decimal

from tests.shop.integration.views.frames import start, transformed

from shop.views.sensor_averages import VIEW


def test_the_average_of_a_minute_is_rounded_to_six_places(spark):
    readings = [Decimal("1.000"), Decimal("1.000"), Decimal("2.000")]
    (row,) = transformed(spark, VIEW, [(0, {"sensor_id": "s", "metric": "m", "reading": r}) for r in readings])
    assert (start(row), row["readings"], row["average"]) == ("10:00", 3, Decimal("1.333333"))
    assert (row["lowest"], row["highest"]) == (Decimal(1), Decimal(2))


def test_each_metric_of_a_sensor_has_its_own_average(spark):
    metrics = [("temperature", "20.000"), ("humidity", "50.000")]
    rows = transformed(spark, VIEW, [(0, {"sensor_id": "s", "metric": m, "reading": Decimal(r)}) for m, r in metrics])
    assert {row["metric"]: row["average"] for row in rows} == {"temperature": 20, "humidity": 50}
