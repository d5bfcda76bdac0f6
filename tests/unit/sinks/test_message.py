"""Messages that leave the lake: their idempotency key, their form, and the rows that are refused."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from lockstep.sinks.errors import InvalidRow
from lockstep.sinks.message import alert_id, messages

AT = datetime(2026, 11, 10, 10, 0, 15, tzinfo=UTC)


def test_an_alert_has_the_same_id_on_every_run_and_another_id_than_similar_alerts():
    assert alert_id("fraud", "u1", AT) == alert_id("fraud", "u1", AT.astimezone(timezone(timedelta(hours=2))))
    others = [
        ("fraud", "u2", AT),
        ("fraud", "u1", AT + timedelta(seconds=1)),
        ("failed_logins", "u1", AT),
        ("fraud", "u1"),
    ]
    assert len({alert_id(*parts) for parts in [("fraud", "u1", AT), *others]}) == 5


def test_parts_that_are_equal_when_joined_give_different_ids():
    assert alert_id("ab", "c") != alert_id("a", "bc")


def test_a_row_becomes_json_with_times_in_utc_and_exact_amounts():
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
def test_a_row_without_a_valid_id_is_refused_and_the_message_names_the_sink(row):
    with pytest.raises(InvalidRow, match="fraud: a row has no valid alert_id"):
        list(messages([row], "fraud"))
