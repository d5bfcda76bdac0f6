"""Which records the oracles count."""

import pytest
from tests.shop.oracles.record import REQUIRED, accepted, delay, on_time
from tests.shop.unit.contracts.test_contracts import EVENTS, OF_AGGREGATES
from tests.support.records import event_record

from lockstep.contracts import CONTRACTS


def view(number, arrives_after=0.5, **changes):
    return event_record("page_views", number, 10, arrives_after, **({"user_id": "u1", "page": "/"} | changes))


def test_the_oracles_and_the_contracts_require_the_same_columns():
    for stream, columns in REQUIRED.items():
        assert {"event_id", "event_time", *columns} == set(CONTRACTS[stream].required)
    assert REQUIRED.keys() >= EVENTS | OF_AGGREGATES.keys()


@pytest.mark.parametrize("missing", ["event_id", "event_time", "user_id", "page"])
def test_an_event_without_a_required_column_does_not_count(missing):
    assert accepted([view(1, **{missing: None})]) == []


@pytest.mark.parametrize(("seconds", "counts"), [(-300, True), (-300.001, False)])
def test_an_event_from_the_future_does_not_count(seconds, counts):
    assert bool(accepted([view(1, arrives_after=seconds)])) == counts


def test_of_records_with_one_id_the_first_in_the_log_counts():
    first, second = view(1, event_id="e", page="/first"), view(2, event_id="e", page="/second")
    assert accepted([second, first]) == [first]


@pytest.mark.parametrize(("seconds", "counts"), [(5, True), (5.001, False)])
def test_an_event_is_late_after_its_limit(seconds, counts):
    record = view(1, arrives_after=seconds)
    assert delay(record) == pytest.approx(seconds)
    assert bool(on_time([record], 5)) == counts
