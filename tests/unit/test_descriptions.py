"""The line for each table that a task has worked on."""

from datetime import UTC, datetime
from typing import Any, cast

from tests.support.commits import entry, ranges

from lockstep.descriptions import checked, compacted, compared, written
from lockstep.maintain.run import MaintenanceResult
from lockstep.quality.checks import Check
from lockstep.quality.outcomes import Outcome as Checked
from lockstep.reconcile.report import Report
from lockstep.results import Outcome
from lockstep.suite_files import Severity

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_a_commit_says_what_it_took_and_what_became_of_the_rows() -> None:
    line = written("silver.clicks", entry(ranges({0: (0, 10), 1: (5, 8)}), counts={"silver": 12, "duplicates": 1}))
    assert (line.outcome, line.detail) == (Outcome.DONE, "13 offsets, 1 duplicates")


def test_a_shut_gate_says_which_check_failed() -> None:
    def gate(*results: Check) -> Checked:
        return Checked("silver.clicks", "silver.clicks", results, 100, "true", 4, NOON)

    passed = Check("expect_something()", (), Severity.FAIL, success=True)
    odd = Check("expect_other()", (), Severity.WARN, success=False, reason="expect_other(): 1 of 100 rows do not hold")
    assert checked(gate(passed)).detail == "passed 1 checks"
    assert checked(gate(passed, odd)).outcome is Outcome.DONE
    assert checked(gate(passed, odd)).detail.endswith("; warning: expect_other(): 1 of 100 rows do not hold")
    reason = "expect_column_values_to_be_unique(column='id'): 2 of 100 rows do not hold"
    shut = checked(gate(passed, Check("unique", ("id",), Severity.FAIL, success=False, reason=reason)))
    assert (shut.outcome, shut.rows) == (Outcome.FAILED, 100)
    assert shut.detail.startswith("the gate is shut: expect_column_values_to_be_unique")


def test_a_view_whose_layers_differ_for_no_known_cause_has_failed() -> None:
    def report(windows: int, unexplained: int) -> Report:
        verdict = cast(Any, "unexplained" if unexplained else "equal")
        return Report("trends", verdict, NOON, windows, unexplained, sample="10:00 /cart")

    assert compared("serving.trends", report(7, 0)).detail == "7 windows equal, until 2026-11-20 12:00"
    assert compared("serving.trends", report(0, 0)).outcome is Outcome.NOTHING_NEW
    differs = compared("serving.trends", report(7, 2))
    assert differs.outcome is Outcome.FAILED
    assert differs.detail == "2 of 7 windows differ for no known cause, such as 10:00 /cart"


def test_housekeeping_says_how_many_files_are_left() -> None:
    assert compacted(MaintenanceResult("gold.trends", 1200, 3)).detail == "1,200 files before, 3 after"
    assert compacted(MaintenanceResult("gold.trends", 3, 3)).outcome is Outcome.NOTHING_NEW
