"""Each kind of trouble is a problem of the status, in a line of its own."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.airflow_api import Run
from lockstep.quality.outcomes import GateVerdict
from lockstep.status.gather import problems
from lockstep.status.lag import PartitionLag
from lockstep.status.model import Stream, ViewStatus

STREAM = Stream("clicks", "clicks", log_end=10, bronze=10, silver=7, duplicates=1, quarantined=1, markers=1)
VIEW = ViewStatus(
    "page_views_per_minute", 9, 1, 0, until="2026-11-20T10:00:00+00:00", windows=5, unexplained=0, sample=None
)
RUN = Run("ingest", "run-1", "success", "2026-11-20T10:00:00+00:00")
PASSED = GateVerdict(success=True, checks=14, failed=0, rows=3)
HEALTH = {"kafka": "healthy", "spark": "healthy"}
LOST = replace(STREAM, silver=6)
DIFFERENT = replace(VIEW, unexplained=2, sample="10:00 /cart")
RUN_FAILED = replace(RUN, state="failed")
GATE_FAILED = GateVerdict(success=False, checks=14, failed=2, rows=3253)


def test_when_all_is_right_there_is_no_problem() -> None:
    running = replace(RUN, dag="refine", state="running", ended_at=None)
    before = replace(VIEW, until=None, windows=0)
    runs = {"ingest": RUN, "refine": running}
    assert problems([STREAM], [VIEW, before], HEALTH, runs, {"silver.clicks": PASSED}) == []


@pytest.mark.parametrize("state", ["unhealthy", "starting", "stopped", "failed"])
def test_a_service_that_is_not_healthy_is_named_with_its_log(state: str) -> None:
    health = HEALTH | {"connect": state}
    assert problems([], [], health, {}, {}) == [f"connect is {state}: see `lockstep logs connect`"]


@pytest.mark.parametrize("silver", [6, 8])
def test_a_stream_with_lost_or_doubled_rows_is_named(silver: int) -> None:
    wrong = replace(STREAM, silver=silver)
    assert problems([STREAM, wrong], [], {}, {}, {}) == ["clicks: the rows of bronze and silver do not add up"]


def test_the_sums_of_a_stream_are_not_judged_while_silver_is_behind_bronze() -> None:
    behind = replace(STREAM, silver=6, lag={"bronze": 0, "silver": 1})
    equally_late = replace(STREAM, silver=6, lag={"bronze": 1, "silver": 1})
    assert problems([behind], [], {}, {}, {}) == []
    assert len(problems([equally_late], [], {}, {}, {})) == 1


def test_a_view_with_unexplained_windows_is_named_with_a_sample() -> None:
    assert problems([], [VIEW, DIFFERENT], {}, {}, {}) == [
        "page_views_per_minute: 2 windows differ, such as 10:00 /cart"
    ]


def test_a_dag_whose_last_run_failed_is_named() -> None:
    assert problems([], [], {}, {"ingest": RUN, "refine": RUN_FAILED}, {}) == [
        "DAG refine: its last run failed 2026-11-20T10:00:00"
    ]


def test_a_shut_gate_is_named_with_its_verdict() -> None:
    quality = {"silver.clicks": PASSED, "silver.orders": GATE_FAILED}
    assert problems([], [], {}, {}, quality) == [
        "the gate of silver.orders is shut: FAILED 2 of 14 checks on 3,253 rows"
    ]


def test_a_transaction_that_hangs_is_named_and_one_that_is_under_way_is_not() -> None:
    long_ago, now = datetime(2026, 11, 20, 10, tzinfo=UTC), datetime.now(UTC)
    open_ = [PartitionLag(p, 0, end=9, stable=4, position={}, written_at=at) for p, at in enumerate((long_ago, now))]
    assert problems([replace(STREAM, partitions=open_)], [], {}, {}, {}) == [
        "clicks: 5 records of clicks-0 wait behind a transaction that is open since 2026-11-20 10:00:00 or longer: "
        "see `kafka-transactions find-hanging`"
    ]


def test_all_problems_are_listed_together() -> None:
    every_kind = problems(
        [LOST], [DIFFERENT], {"kafka": "failed"}, {"refine": RUN_FAILED}, {"silver.orders": GATE_FAILED}
    )
    assert len(every_kind) == len(set(every_kind)) == 5
