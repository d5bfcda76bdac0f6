"""A plan says what is simulated, and stays the same when it is stored."""

import itertools
from datetime import UTC, date, datetime, timedelta

import pandas as pd
import pytest
from pydantic import ValidationError

from shop.simulate.plan import Amounts, Plan
from shop.simulate.simulation import HEARTBEAT_AFTER, new_plan, slices


def test_a_simulation_ends_with_the_last_day_before_today(raw: pd.DataFrame) -> None:
    for offset in range(7):
        today = date(2026, 11, 21) + timedelta(days=offset)
        plan = Plan.make(raw, 28, Amounts(), today)
        assert plan.end == datetime(2026, 11, 21, tzinfo=UTC)


def test_the_last_heartbeat_of_a_new_simulation_is_never_in_the_future(raw: pd.DataFrame) -> None:
    midnight = datetime(2026, 11, 28, tzinfo=UTC)
    ends = [new_plan(raw, {}, midnight + timedelta(minutes=n)).end for n in (0, 14, 15)]
    assert ends == [midnight - timedelta(weeks=1)] * 2 + [midnight]
    assert timedelta(minutes=15) == HEARTBEAT_AFTER


def test_a_simulation_of_n_days_begins_n_days_before_the_last_order(raw: pd.DataFrame) -> None:
    plan = Plan.make(raw, 28, Amounts(), date(2026, 11, 21))
    assert plan.start == datetime(2026, 10, 23, 12, 50, tzinfo=UTC)


def test_a_simulation_of_everything_begins_with_the_first_order(raw: pd.DataFrame) -> None:
    plan = Plan.make(raw, None, Amounts(), date(2026, 11, 21))
    assert plan.start == datetime(2025, 11, 12, 8, 26, tzinfo=UTC)


def test_a_stored_plan_is_the_same_plan(plan: Plan) -> None:
    assert Plan.model_validate(plan.model_dump(mode="json")) == plan


@pytest.mark.parametrize("wrong", [{"late": 1.5}, {"sessions_per_order": 0}, {"sensor_interval": 0}, {"speed": 3}])
def test_amounts_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Amounts(**wrong)


@pytest.mark.parametrize("width", [timedelta(seconds=7), timedelta(hours=1), timedelta(days=1)])
def test_slices_adjoin_and_end_on_multiples_of_their_width(width: timedelta) -> None:
    start, end = datetime(2026, 11, 1, 12, 50, tzinfo=UTC), datetime(2026, 11, 1, 13, 59, 59, tzinfo=UTC)
    found = list(slices(start, end, width))
    assert found[0][0] == start
    assert found[-1][1] == end
    assert all(before[1] == after[0] for before, after in itertools.pairwise(found))
    assert all(moment.timestamp() % width.total_seconds() == 0 for _, moment in found[:-1])


def test_nothing_is_left_to_slice_at_the_end() -> None:
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    assert not list(slices(moment, moment, timedelta(hours=1)))
