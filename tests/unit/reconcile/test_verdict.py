"""A window is explained if all of its keys are."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lockstep.reconcile.difference import Cause, Difference, Kind, Side
from lockstep.reconcile.verdict import Verdict, joined, overall, window_verdicts

START = datetime(2026, 1, 1, tzinfo=UTC)
NEXT = START + timedelta(minutes=1)
UNKNOWN = Difference(START, "k", Kind.CHANGED, Side("3").wrong(), Side("2"))
LATE = replace(UNKNOWN, live=Side("3").wrong(Cause.LATE))
WITHIN = replace(UNKNOWN, live=Side("3"), within_error=True)
AHEAD = replace(UNKNOWN, live=Side("3").wrong(Cause.NOT_YET_SEEN))


def test_a_window_is_explained_when_all_its_keys_are():
    windows = window_verdicts([LATE, UNKNOWN, replace(LATE, window_start=NEXT)])
    assert {start: window.verdict for start, window in windows.items()} == {START: "unexplained", NEXT: "explained"}
    assert windows[START].causes == (Cause.LATE,)


def test_a_window_whose_rows_differ_by_no_more_than_their_error_is_settled():
    assert window_verdicts([WITHIN])[START].verdict == "within its stated error"
    assert not window_verdicts([WITHIN])[START].open
    assert overall(window_verdicts([WITHIN])) == "within its stated error"
    assert window_verdicts([WITHIN, LATE])[START].verdict == "explained"
    assert window_verdicts([WITHIN, UNKNOWN])[START].verdict == "unexplained"


def test_a_window_is_compared_again_while_it_is_unexplained_or_its_cause_passes():
    assert [window_verdicts([d])[START].open for d in (LATE, UNKNOWN, AHEAD)] == [False, True, True]


def test_the_parts_of_a_window_are_judged_as_if_they_were_judged_together():
    later = replace(LATE, window_start=NEXT)
    for parts in ([LATE, later], [UNKNOWN]), ([UNKNOWN], [AHEAD, later]), ([later], [LATE, AHEAD]):
        assert joined(*map(window_verdicts, parts)) == window_verdicts([d for part in parts for d in part])


def test_the_worst_window_decides_the_overall_verdict():
    assert overall({}) is Verdict.EQUAL
    assert overall(window_verdicts([LATE])) is Verdict.EXPLAINED
    assert overall(window_verdicts([LATE, replace(UNKNOWN, window_start=NEXT)])) is Verdict.UNEXPLAINED
