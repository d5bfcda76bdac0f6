"""What leaves the lake: its idempotency key, its form, and what is refused."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from lockstep.definition.alerting import Delivery
from lockstep.sinks.errors import NameRefused, RowRefused
from lockstep.sinks.sink import TopicSink, alert_id, messages

AT = datetime(2026, 11, 10, 10, 0, 15, tzinfo=UTC)


def test_an_alert_has_the_same_id_on_every_run_and_another_one_than_its_neighbours():
    assert alert_id("fraud", "u1", AT) == alert_id("fraud", "u1", AT.astimezone(timezone(timedelta(hours=2))))
    others = [
        ("fraud", "u2", AT),
        ("fraud", "u1", AT + timedelta(seconds=1)),
        ("failed_logins", "u1", AT),
        ("fraud", "u1"),
    ]
    assert len({alert_id(*parts) for parts in [("fraud", "u1", AT), *others]}) == 5


def test_parts_that_run_together_are_told_apart():
    assert alert_id("ab", "c") != alert_id("a", "bc")


def test_a_row_leaves_as_json_with_its_times_in_utc_and_its_amounts_exact():
    row = {
        "alert_id": "a",
        "user_id": "u1",
        "at": AT.replace(tzinfo=None),
        "day": date(2026, 11, 10),
        "sum": Decimal("0.10"),
    }
    (message,) = messages([row], "fraud", key="user_id")
    assert (message.id, message.key) == ("a", "u1")
    assert json.loads(message.value) == {
        "alert_id": "a",
        "user_id": "u1",
        "at": "2026-11-10T10:00:15.000Z",
        "day": "2026-11-10",
        "sum": "0.10",
    }


@pytest.mark.parametrize(
    "row", [{}, {"alert_id": None}, {"alert_id": ""}, {"alert_id": "a\r\nBcc: b"}, {"alert_id": "x" * 201}]
)
def test_a_row_without_an_id_is_refused_by_name(row):
    with pytest.raises(RowRefused, match="fraud: a row has no sound alert_id"):
        list(messages([row], "fraud"))


@pytest.mark.parametrize("name", ["", "../x", "a b", "A", "x" * 101, "a\n"])
def test_a_sink_is_named_as_a_topic_may_be(name):
    with pytest.raises(NameRefused, match="cannot name a sink"):
        TopicSink(name)
    with pytest.raises(NameRefused, match="cannot name a sink"):
        TopicSink("fraud", topic=name)


def test_alerts_are_delivered_exactly_once_unless_their_sink_says_otherwise():
    assert TopicSink("fraud").delivery == Delivery.EXACTLY_ONCE
