"""Which job's state the service counts: each from time to time, because a count costs as much as many micro-batches."""

from lockstep.live.generation import Generation
from lockstep.service.job import JobHandle
from lockstep.service.loop import COUNT_SECONDS, next_to_count


def handle(name: str, **fields: float) -> JobHandle:
    return JobHandle([(Generation(name), None)], spark=None, **fields)  # type: ignore[list-item,arg-type]


def test_a_job_that_was_never_counted_comes_first_and_each_is_counted_again_after_ten_minutes() -> None:
    old, older, never = handle("old", counted_at=20.0), handle("older", counted_at=10.0), handle("never")
    assert next_to_count([old, older, never], now=30.0) is never
    assert next_to_count([old, older], now=10.0 + COUNT_SECONDS - 1) is None
    assert next_to_count([old, older], now=10.0 + COUNT_SECONDS) is older
