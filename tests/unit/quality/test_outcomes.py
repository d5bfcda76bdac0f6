"""Outcomes are kept where anybody can read them without Spark."""

from datetime import UTC, datetime

from tests.unit.quality.conftest import Commit

from lockstep.quality.outcomes import Outcome, passed, summary
from lockstep.settings import Settings


def outcome(*failed: str) -> Outcome:
    return Outcome(
        table="silver.orders",
        suite="silver.orders",
        success=not failed,
        checks=14,
        failed=failed,
        rows=3253,
        slice="true",
        version=4,
        checked_at=datetime(2026, 11, 20, 10, tzinfo=UTC),
    )


def test_an_outcome_says_in_one_line_how_it_went() -> None:
    assert str(outcome()) == "passed 14 checks on 3,253 rows"
    assert str(outcome("no", "neither")) == "FAILED 2 of 14 checks on 3,253 rows"


def test_nothing_has_passed_before_the_first_gate(settings: Settings) -> None:
    assert passed(settings).seq == 0
    assert summary(settings) == {}


def test_the_newest_record_counts_and_commits_of_maintenance_do_not(settings: Settings, commit: Commit) -> None:
    commit("ops.quality", 1, {"seq": 1, "newest": {"a": "passed"}, "positions": {"a": 1}})
    commit("ops.quality", 2, {"seq": 2, "newest": {"a": "passed", "b": "FAILED"}, "positions": {"a": 1}})
    commit("ops.quality", 3, {})
    assert passed(settings).seq == 2
    assert summary(settings) == {"a": "passed", "b": "FAILED"}
