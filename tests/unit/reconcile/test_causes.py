"""A cause is named only if it produces the very row that is wrong."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.reconcile import causes
from lockstep.reconcile.causes import Writers
from lockstep.reconcile.difference import Cause, Difference, Kind, Side

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def difference(live: str | None, batch: str | None) -> Difference:
    kind = Kind.ONLY_BATCH if live is None else Kind.ONLY_LIVE if batch is None else Kind.CHANGED
    return Difference(at(0), "k", kind, Side(live), Side(batch))


@pytest.mark.parametrize(
    ("live", "batch", "wrong"),
    [("9", "2", "live"), (None, "2", "live"), ("2", "9", "batch"), ("2", None, "batch"), ("9", "8", "both")],
)
def test_a_side_is_wrong_if_it_is_not_as_the_view_computes_it(live, batch, wrong):
    checked = causes.mark_wrong_sides(difference(live, batch), "2")
    assert (checked.live.unexplained, checked.batch.unexplained) == (wrong != "batch", wrong != "live")
    assert not checked.explained


def test_a_row_that_should_not_be_there_is_wrong_on_the_side_that_has_it():
    checked = causes.mark_wrong_sides(difference("1", None), None)
    assert (checked.live.unexplained, checked.batch.correct) == (True, True)
    assert checked.corrected


def test_a_cause_that_produces_another_row_explains_nothing():
    checked = causes.mark_wrong_sides(difference("3", "2"), "2")
    assert causes.attribute_to(Cause.LATE, checked, {"k": "4"}) == checked
    assert causes.attribute_to(Cause.LATE, checked, {"k": "3"}).causes == (Cause.LATE,)
    assert causes.attribute_to(Cause.LATE, checked, {}) == checked


def test_a_cause_that_produces_no_row_explains_a_row_that_is_missing():
    checked = causes.mark_wrong_sides(difference(None, "2"), "2")
    assert causes.attribute_to(Cause.NOT_YET_SEEN, checked, {"other": "2"}).explained


def test_a_correct_side_is_attributed_to_nothing():
    checked = causes.mark_wrong_sides(difference("2", "9"), "2")
    assert causes.attribute_to(Cause.LATE, checked, {"k": "2"}) == checked


def test_nothing_explains_a_key_that_a_layer_has_twice():
    doubled = replace(difference("2", "2"), kind=Kind.DOUBLED, live=Side("2", doubled=True))
    checked = causes.mark_wrong_sides(doubled, "2")
    assert checked.live.unexplained
    assert not causes.attribute_to(Cause.DUPLICATE, checked, {"k": "2"}).explained
    assert not causes.attribute_to_definition(checked, Writers([(at(9), True)], []), at(1)).explained


ERRORS = {"views": "error"}


def test_a_difference_within_the_stated_error_is_marked_and_a_doubled_key_is_not():
    differs = difference('{"views":9,"error":1}', '{"views":8,"error":1}')
    assert causes.mark_within_error(differs, ERRORS).explained
    assert str(causes.mark_within_error(differs, ERRORS)).endswith("within the stated error")
    assert not causes.mark_within_error(difference('{"views":9,"error":0}', '{"views":8,"error":0}'), ERRORS).explained
    assert not causes.mark_within_error(replace(differs, kind=Kind.DOUBLED), ERRORS).explained


def test_a_side_within_the_error_of_what_the_view_computes_is_correct():
    differs = difference('{"views":20,"error":1}', '{"views":9,"error":1}')
    checked = causes.mark_wrong_sides(differs, '{"views":8,"error":1}', ERRORS)
    assert (checked.live.unexplained, checked.batch.correct, checked.corrected) == (True, True, True)
    late = causes.attribute_to(Cause.LATE, checked, {"k": '{"views":19,"error":1}'}, ERRORS)
    assert late.causes == (Cause.LATE,)


def test_both_sides_must_be_explained():
    late = causes.attribute_to(Cause.LATE, causes.mark_wrong_sides(difference("3", "9"), "2"), {"k": "3"})
    assert not late.explained
    both = causes.attribute_to_definition(late, Writers([], [(None, True)]), None)
    assert both.causes == (Cause.LATE, Cause.OTHER_CODE)
    assert both.explained


def test_a_row_is_attributed_to_the_definition_that_wrote_it():
    writers = Writers([(at(1), True), (at(2), False)], [((at(5), at(6)), True), (None, False)])
    assert [writers.other_definition_live(at(m)) for m in (0, 1, 2, 3)] == [True, True, False, False]
    assert [writers.other_definition_batch(at(m)) for m in (4, 5, 6)] == [False, True, False]
    assert not Writers([], []).other_definition_live(at(1))


def test_a_missing_window_takes_the_time_of_the_window_before_it():
    windows = [(at(1), at(11)), (at(2), at(12)), (at(4), at(14))]
    assert [causes.last_written(windows, at(m)) for m in (0, 1, 3, 9)] == [at(11), at(11), at(12), at(14)]


def test_a_replay_explains_what_it_rewrites_and_nothing_is_corrected_yet():
    checked = causes.mark_wrong_sides(difference("9", "2"), "2")
    waiting = causes.attribute_to_replay(checked, [(at(0), at(1))])
    assert waiting.causes == (Cause.REPLAY,)
    assert waiting.explained
    assert not waiting.corrected
    assert causes.attribute_to_replay(checked, [(at(1), at(2))]) == checked
