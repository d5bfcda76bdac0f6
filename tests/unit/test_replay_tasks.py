"""What the tasks of the replay DAGs say when a replay cannot be done."""

import pytest

from lockstep.control.intervals import IntervalHeld
from lockstep.replay.request import ReplayRefused
from lockstep.replay_tasks import plan, refused_when_held
from lockstep.results import Results


def test_a_replay_whose_interval_somebody_holds_is_refused_and_names_the_holder() -> None:
    with pytest.raises(ReplayRefused, match="held by replay 1a2b"), refused_when_held():
        raise IntervalHeld("gold.trending_pages is held by replay 1a2b")


def test_a_form_that_is_wrong_is_refused_before_anything_is_read() -> None:
    fields = {"reason": "a try", "from": "2026-11-10T12:00:00Z", "to": "2026-11-10T11:00:00Z"}
    with pytest.raises(ReplayRefused, match="must be later than from"):
        plan(fields, "run-1", "alice", Results())
