"""Anybody can read the newest verdicts of the gates without Spark."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.support.ops_records import OpsRecords

from lockstep.quality.checks import Check
from lockstep.quality.outcomes import GateState, GateVerdict, Outcome, latest
from lockstep.settings import Settings
from lockstep.suite_files import Severity

PASSED = {"success": True, "checks": 14, "failed": 0, "rows": 3}
FAILED = {"success": False, "checks": 14, "failed": 2, "rows": 3}


def check(success: bool, reason: str = "", severity: Severity = Severity.FAIL) -> Check:
    return Check("expect_something()", (), severity, success, reason=reason)


def outcome(*failed: str) -> Outcome:
    return Outcome(
        table="silver.orders",
        suite="silver.orders",
        results=(*(check(False, reason) for reason in failed), *[check(True)] * (14 - len(failed))),
        rows=3253,
        slice="true",
        version=4,
        checked_at=datetime(2026, 11, 20, 10, tzinfo=UTC),
    )


def test_a_verdict_has_the_outcome_in_numbers() -> None:
    assert outcome().verdict == GateVerdict(success=True, checks=14, failed=0, rows=3253)
    assert outcome("no", "neither").verdict == GateVerdict(success=False, checks=14, failed=2, rows=3253)


def test_a_verdict_is_printed_in_one_line() -> None:
    assert str(outcome().verdict) == "passed 14 checks on 3,253 rows"
    assert str(outcome("no", "neither").verdict) == "FAILED 2 of 14 checks on 3,253 rows"


def test_a_warning_is_counted_and_leaves_the_gate_open() -> None:
    warned = outcome()
    warned = replace(warned, results=(*warned.results[1:], check(False, "odd", Severity.WARN)))
    assert (warned.success, warned.failed, warned.warned) == (True, (), ("odd",))
    assert str(warned.verdict) == "passed 14 checks on 3,253 rows, 1 warning"


def test_rows_that_should_be_aside_shut_the_gate() -> None:
    old = replace(outcome(), results=(check(False, "negative", Severity.QUARANTINE),))
    assert (old.success, old.failed) == (False, ("negative",))


def test_before_the_first_gate_nothing_has_passed_and_nothing_is_held_back() -> None:
    assert GateState.of({}) == GateState({}, {})
    assert GateState.of({}).held_back == {}


def test_the_newest_record_has_the_state_of_all_gates(settings: Settings, ops_records: OpsRecords) -> None:
    ops_records.write("ops.quality", {"verdicts": {"a": PASSED}, "positions": {"a": 1}})
    ops_records.write("ops.quality", {"verdicts": {"a": PASSED, "b": FAILED}, "positions": {"a": 1}})
    state = latest(settings)
    assert state.positions == {"a": 1}
    assert state.verdicts == {"a": GateVerdict(True, 14, 0, 3), "b": GateVerdict(False, 14, 2, 3)}


def test_a_table_is_held_back_at_its_last_version_that_passed_while_its_newest_verdict_is_a_failure() -> None:
    failed, passed = GateVerdict(False, 14, 2, 3), GateVerdict(True, 14, 0, 3)
    state = GateState({"a": 7, "b": 3}, {"a": failed, "b": passed, "never_passed": failed})
    assert state.held_back == {"a": 7, "never_passed": -1}
