"""What is prepared for several views at once stops none of them."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from tests.unit.batch.test_summary import EVENTS, KEYED

from lockstep.batch import prepare
from lockstep.batch.plan import Intake, Plan
from lockstep.errors import LockstepError
from lockstep.ledger.ranges import Range

SOUND, BROKEN = (replace(KEYED, name=name, inputs=KEYED.inputs[:1]) for name in ("sound", "broken"))
TAKEN = Intake(EVENTS, SimpleNamespace(version=4, table="silver.e"), (Range("e", "id", 0, 0, 5),))
PREPARED = prepare.Prepared(Plan(None, (TAKEN,), datetime(2026, 11, 20, 10, tzinfo=UTC)), None)


def prepared():
    return prepare.prepare(None, [SOUND, BROKEN], lambda: nullcontext(None))


@pytest.fixture(autouse=True)
def no_gold(monkeypatch):
    monkeypatch.setattr(prepare.ledger, "latest", lambda *_: None)


@pytest.mark.parametrize("error", [DeltaError("a file is gone"), LockstepError("a gap")])
def test_a_view_that_cannot_be_prepared_is_left_to_its_own_roll_up(monkeypatch, error):
    def prepare_view(view, *_):
        if view is BROKEN:
            raise error
        return PREPARED

    monkeypatch.setattr(prepare, "prepare_view", prepare_view)
    assert [*prepared()] == ["sound"]


@pytest.mark.parametrize("error", [DeltaError("a file is gone"), PySparkException("an expression fails")])
def test_views_whose_common_job_fails_ask_for_their_events_one_by_one(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(prepare, "prepare_view", lambda *_: PREPARED)
    monkeypatch.setattr(prepare, "_silver", fail)
    assert {name: one.events for name, one in prepared().items()} == {"sound": None, "broken": None}
