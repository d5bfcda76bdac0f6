"""Where the sample of an environment begins."""

from datetime import UTC, datetime, timedelta

import pytest

from lockstep.definition.view import BEGINNING
from lockstep.environments.sample import DEFAULT, SampleRefused, parse_since

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", NOW - timedelta(minutes=90)),
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        (DEFAULT, NOW - timedelta(days=1)),
        ("1969-11-20T09:00:00Z", BEGINNING),
        ("2026-11-20T09:00:00Z", NOW - timedelta(hours=1)),
        ("2026-11-20T09:00:00+02:00", NOW - timedelta(hours=3)),
        ("earliest", BEGINNING),
    ],
)
def test_it_begins_some_time_ago_or_at_a_time_or_with_the_first_records(text: str, at: datetime) -> None:
    assert parse_since(text, NOW) == at


@pytest.mark.parametrize(
    "text", ["", "2", "h", "-2h", "2 h", "2w", "latest", "2026-11-20T09:00:00", "2026-11-20T10:00:01Z"]
)
def test_anything_else_is_refused_and_so_is_the_future(text: str) -> None:
    with pytest.raises(SampleRefused, match="is not where a sample can begin: use earliest"):
        parse_since(text, NOW)
