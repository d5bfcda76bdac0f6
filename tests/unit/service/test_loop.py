"""Which job's state the service counts: each from time to time, because a count costs as much as many micro-batches."""

import pytest

from lockstep.errors import LockstepError
from lockstep.live.generation import Generation
from lockstep.service.job import COUNT_SECONDS, JobHandle, inspection
from lockstep.service.loop import next_to_count
from lockstep.settings import Settings


def handle(name: str) -> JobHandle:
    return JobHandle([(Generation(name), None)], spark=None)  # type: ignore[list-item,arg-type]


def test_a_job_that_was_never_counted_comes_first_and_each_is_counted_again_after_ten_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inspection, "state_rows", lambda *_: {})
    old, older, never = handle("old"), handle("older"), handle("never")
    for counted, at in ((older, 10.0), (old, 20.0)):
        counted.count_state(None, Settings(), at)  # type: ignore[arg-type]
    assert next_to_count([old, older, never], now=30.0) is never
    assert next_to_count([old, older], now=10.0 + COUNT_SECONDS - 1) is None
    assert next_to_count([old, older], now=10.0 + COUNT_SECONDS) is older


def test_a_job_that_has_no_state_yet_is_tried_again_soon_and_keeps_no_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> dict[str, int]:
        raise LockstepError("it has no state yet")

    monkeypatch.setattr(inspection, "state_rows", refuse)
    empty, other = handle("empty"), handle("other")
    empty.count_state(None, Settings(), 10.0)  # type: ignore[arg-type]
    assert next_to_count([empty, other], now=30.0) is other
    assert next_to_count([empty], now=30.0) is empty
