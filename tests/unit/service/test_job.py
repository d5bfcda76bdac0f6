"""What the service remembers of a job between two publications."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException, SparkException, UnknownException
from tests.unit.live.test_progress import LAST_PROGRESS

from lockstep.live.generation import Generation
from lockstep.service import job
from lockstep.service.job import JobHandle
from lockstep.settings import Settings


def report(batch: int, dropped: int) -> SimpleNamespace:
    fields = {"batchId": batch, "timestamp": f"2026-11-21T09:00:0{batch}.000Z"}
    return SimpleNamespace(
        json=json.dumps(LAST_PROGRESS | fields | {"stateOperators": [{"numRowsDroppedByWatermark": dropped}]})
    )


def test_rows_that_an_earlier_batch_has_dropped_stay_in_the_progress() -> None:
    view = SimpleNamespace(name="a", streams=())
    # Spark drops none of our rows, so there is no real query that could report some.
    query = SimpleNamespace(recentProgress=[report(1, 2), report(2, 0)])
    handle = JobHandle([(Generation("a"), view)], spark=None, running=query)  # type: ignore[list-item,arg-type]
    assert [p.dropped_rows for p in handle.progress()] == [2]
    query.recentProgress = [report(2, 0), report(3, 5), report(4, 0)]
    assert [(p.batch, p.dropped_rows) for p in handle.progress()] == [(4, 7)]
    handle.running = None
    assert [(p.batch, p.dropped_rows) for p in handle.progress()] == [(None, 7)]


def test_what_its_last_batches_have_dropped_before_a_stop_is_counted_too() -> None:
    view = SimpleNamespace(name="a", streams=())
    query = SimpleNamespace(recentProgress=[report(1, 2)], stop=lambda: query.recentProgress.append(report(2, 3)))
    handle = JobHandle([(Generation("a"), view)], spark=None, running=query)  # type: ignore[list-item,arg-type]
    handle.stop()
    assert (handle.running, handle.dropped_rows) == (None, 5)


@pytest.mark.parametrize("kind", [SparkException, UnknownException])
def test_a_query_that_the_server_cannot_start_now_is_tried_again_and_stops_nothing_else(
    monkeypatch: pytest.MonkeyPatch, kind: type[SparkConnectGrpcException]
) -> None:
    def busy(*_: Any) -> None:
        raise kind("(org.apache.spark.SparkException) Python worker failed to connect back.\nmore")

    monkeypatch.setattr(job, "adopt_or_start", busy)
    monkeypatch.setattr(job, "offsets_of_existing_topics", lambda *_: {})
    monkeypatch.setattr(job, "changed_logs", lambda *_: {})
    monkeypatch.setattr(job, "lost_records", lambda *_: None)
    view = SimpleNamespace(name="a", streams=())
    handle = JobHandle([(Generation("a"), view)], spark=None)  # type: ignore[list-item,arg-type]
    handle.supervise(Settings(), now=0, every=1)
    assert (handle.running, handle.failures) == (None, 1)
    assert handle.error == "(org.apache.spark.SparkException) Python worker failed to connect back."
