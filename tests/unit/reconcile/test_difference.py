"""A side is correct, wrong for a known cause, or wrong for no known cause."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.reconcile.difference import Cause, Difference, Kind, Side

CHANGED = Difference(datetime(2026, 1, 1, tzinfo=UTC), "k", Kind.CHANGED, Side("3"), Side("2"))


def test_a_correct_side_has_no_cause():
    with pytest.raises(ValueError, match="'late'"):
        Side("3", correct=True, cause=Cause.LATE)


def test_a_side_is_unexplained_only_if_it_is_wrong_for_no_known_cause():
    sides = (Side("3"), Side("3").wrong(), Side("3").wrong(Cause.LATE))
    assert [side.unexplained for side in sides] == [False, True, False]


def test_a_doubled_side_is_wrong_even_if_its_row_is_right():
    side = Side("2", doubled=True).checked("2")
    assert (side.correct, side.unexplained, side.attributable) == (False, True, False)


def test_a_difference_that_nobody_has_checked_is_not_explained():
    assert not CHANGED.explained
    assert CHANGED.causes == ()


@pytest.mark.parametrize("cause", [None, *Cause])
def test_live_is_corrected_unless_it_becomes_right_by_itself(cause):
    difference = replace(CHANGED, live=CHANGED.live.wrong(cause))
    assert difference.corrected == (cause not in {Cause.NOT_YET_SEEN, Cause.REPLAY})


def test_live_is_not_corrected_by_a_row_that_is_wrong_too():
    assert not replace(CHANGED, live=CHANGED.live.wrong(), batch=CHANGED.batch.wrong()).corrected


def test_a_cause_of_both_sides_is_named_once():
    both = replace(CHANGED, live=Side("3").wrong(Cause.OTHER_CODE), batch=Side("2").wrong(Cause.OTHER_CODE))
    assert str(both) == "k: live 3, batch 2: other code version"


def test_the_text_names_the_layer_that_has_the_key_twice():
    assert str(replace(CHANGED, live=Side("2", doubled=True))) == (
        "k: live 2, batch 2 (live has it more than once): no known cause"
    )
