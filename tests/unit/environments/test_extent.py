"""An environment and production are compared in the rows that both have as final and the sample knows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.contracts import Contract
from lockstep.definition import Input, Keyed, View, Windowed
from lockstep.definition.view import BEGINNING
from lockstep.environments.extent import extent

SINCE = datetime(2026, 11, 10, 10, 0, 30, tzinfo=UTC)
UNTIL = datetime(2026, 11, 10, 12, tzinfo=UTC)
CLICKS = Contract("clicks", "clicks", "events", {}, (), (), "event_time", max_clock_skew=timedelta(minutes=5))
USERS = replace(CLICKS, name="users", kind="changes")
HOUR = timedelta(hours=1)


@pytest.fixture
def windowed() -> Windowed:
    return Windowed(
        name="per_hour",
        columns={},
        key=(),
        allowed_lateness=HOUR,
        input="clicks",
        measures={},
        size=HOUR,
        slide=HOUR,
    )


@pytest.fixture
def keyed() -> Keyed:
    return Keyed(
        name="sessions",
        columns={},
        key=(),
        allowed_lateness=HOUR,
        inputs=(Input("page_views", "user_id"),),
        process=lambda state, _: (state, []),
        lookback=HOUR,
    )


def test_windows_begin_with_the_first_one_that_no_missing_event_can_be_in(windowed: View) -> None:
    # An event that arrived just before the sample may have happened up to five minutes later.
    assert extent(windowed, [CLICKS], SINCE, False, UNTIL).low == datetime(2026, 11, 10, 11, tzinfo=UTC)


def test_rows_of_machines_begin_after_all_that_they_look_back_on(keyed: View) -> None:
    found = extent(keyed, [CLICKS], SINCE, False, UNTIL)
    assert (found.low, found.until) == (SINCE + timedelta(minutes=5) + HOUR, UNTIL)
    assert not found.lacks_history


def test_a_view_that_needs_all_history_is_compared_and_named(keyed: Keyed) -> None:
    all_history = replace(keyed, lookback=None)
    assert extent(all_history, [CLICKS], SINCE, False, UNTIL).lacks_history
    assert not extent(all_history, [CLICKS], SINCE, True, UNTIL).lacks_history


def test_a_sample_of_all_records_leaves_nothing_out(windowed: View) -> None:
    assert extent(windowed, [CLICKS], SINCE, True, UNTIL).low == BEGINNING


def test_tables_are_in_the_sample_as_a_whole(keyed: Keyed) -> None:
    upserted = replace(keyed, inputs=(Input("users", "user_id"),))
    found = extent(upserted, [USERS], SINCE, True, None)
    assert (found.until, found.is_empty, found.lacks_history) == (None, False, False)
    assert found.where(upserted) == "true"


@pytest.mark.parametrize("until", [None, SINCE, SINCE + timedelta(minutes=5)])
def test_there_is_nothing_to_compare_where_nothing_is_final_after_the_beginning(
    windowed: View, until: datetime | None
) -> None:
    assert extent(windowed, [CLICKS], SINCE, False, until).is_empty
