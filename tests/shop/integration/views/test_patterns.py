"""The worked examples of sessions, sliding windows, joins and patterns through Spark, live and in batch."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.support.scenario import START
from tests.support.tables import rows_of

from lockstep.definition.tables import gold_of, live_of


@pytest.fixture(params=["live", "batch"])
def of(request: pytest.FixtureRequest, spark: Any, name: str, scenario: Any, live: Any) -> Any:
    """The view's rows that name a user or session, in the order of their instants, in either layer."""
    table = {"live": live_of, "batch": gold_of}[request.param](scenario.views[name])
    rows = [row.asDict() for row in rows_of(spark, scenario.settings, table)]
    return lambda who: sorted((row for row in rows if who in row.values()), key=lambda row: row["at"])


def second(instant: datetime) -> float:
    """Seconds after the start."""
    return (instant.replace(tzinfo=UTC) - START).total_seconds()


@pytest.mark.parametrize("name", ["user_sessions"])
def test_session_10min(of):
    assert [(second(s["session_start"]), second(s["session_end"]), s["pages"]) for s in of("session_10min")] == [
        (0, 14 * 60, 3),
        (25 * 60, 25 * 60, 1),
    ]


@pytest.mark.parametrize("name", ["activity_within_five_minutes"])
def test_sliding_5min(of):
    assert [row["events"] for row in of("sliding_5min/together")] == [1, 2]
    assert [row["events"] for row in of("sliding_5min/apart")] == [1, 1]


@pytest.mark.parametrize("name", ["ad_click_through"])
def test_impressions_clicks(of):
    (joined,), (unmatched,) = of("impressions_clicks/A"), of("impressions_clicks/B")
    assert (joined["ad_id"], joined["delay_ms"]) == ("123", 120_000)
    assert (unmatched["ad_id"], unmatched["click_id"], round(second(unmatched["at"]))) == ("456", None, 15 * 60)


@pytest.mark.parametrize("name", ["ad_ctr"])
def test_impressions_clicks_as_a_rate(of):
    (one,), (other,) = of("123"), of("456")
    assert (one["ctr"], other["ctr"]) == (1.0, 0.0)
    assert (one["clicked"] + other["clicked"]) / (one["impressions"] + other["impressions"]) == 0.5


@pytest.mark.parametrize("name", ["search_click_through"])
def test_search_click(of):
    assert [(row["click_no"], row["position"]) for row in of("search_click")] == [(1, 3)]


@pytest.mark.parametrize("name", ["fraud_alerts"])
def test_fraud_country(of):
    assert [row["login_country"] for row in of("fraud_country/4:59")] == ["France"]
    assert of("fraud_country/5:00") == []


@pytest.mark.parametrize("name", ["failed_logins"])
def test_failed_logins(of):
    assert [second(row["at"]) for row in of("failed_logins")] == [240]
