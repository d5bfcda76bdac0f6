"""A cause is named only where it gives the very row that is wrong."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.version import definition_version
from lockstep.reconcile import causes
from lockstep.reconcile.causes import Difference, Writers

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def difference(live: str | None, batch: str | None, **more: str) -> Difference:
    kind = "only_batch" if live is None else "only_live" if batch is None else "changed"
    return Difference(at(0), "k", more.pop("kind", kind), live, batch, **more)


@pytest.mark.parametrize(
    ("live", "batch", "wrong"),
    [("9", "2", "live"), (None, "2", "live"), ("2", "9", "batch"), ("2", None, "batch"), ("9", "8", "both")],
)
def test_the_side_that_is_not_as_computed_anew_is_wrong(live, batch, wrong):
    found = causes.accuse(difference(live, batch), "2")
    assert (found.live_cause == "", found.batch_cause == "") == (wrong != "batch", wrong != "live")
    assert not found.explained


def test_a_row_that_should_not_be_there_is_wrong_on_the_side_that_has_it():
    found = causes.accuse(difference("1", None), None)
    assert (found.live_cause, found.batch_cause) == ("", None)
    assert found.corrected


def test_a_cause_that_gives_another_row_explains_nothing():
    found = causes.accuse(difference("3", "2"), "2")
    assert causes.excuse(found, causes.LATE, {"k": "4"}) == found
    assert causes.excuse(found, causes.LATE, {"k": "3"}).causes == (causes.LATE,)
    assert causes.excuse(found, causes.LATE, {}) == found


def test_a_cause_that_leaves_a_row_out_explains_its_absence():
    found = causes.accuse(difference(None, "2"), "2")
    assert causes.excuse(found, causes.NOT_YET_SEEN, {"other": "2"}).explained


def test_nothing_explains_a_key_that_is_there_twice():
    found = causes.accuse(difference("2", "2", kind="doubled", doubled="live"), "2")
    assert found.live_cause == ""
    assert not causes.excuse(found, causes.DUPLICATE, {"k": "2"}).explained
    assert not causes.blame_code(found, Writers([(at(9), True)], []), at(1)).explained


def test_both_sides_must_be_explained():
    found = causes.excuse(causes.accuse(difference("3", "9"), "2"), causes.LATE, {"k": "3"})
    assert not found.explained
    assert causes.blame_code(found, Writers([], [(None, True)]), None).causes == (causes.LATE, causes.OTHER_CODE)


def test_code_is_blamed_by_who_wrote_the_row():
    writers = Writers([(at(1), True), (at(2), False)], [((at(5), at(6)), True), (None, False)])
    assert [writers.other_live(at(m)) for m in (0, 1, 2, 3)] == [True, True, False, False]
    assert [writers.other_batch(at(m)) for m in (4, 5, 6)] == [False, True, False]
    assert not Writers([], []).other_live(at(1))


def test_a_window_that_is_missing_was_to_be_written_with_the_one_before_it():
    windows = [(at(1), at(11)), (at(2), at(12)), (at(4), at(14))]
    assert [causes.beside(windows, at(m)) for m in (0, 1, 3, 9)] == [at(11), at(11), at(12), at(14)]


def test_a_replay_excuses_what_it_works_on_and_nothing_is_corrected_yet():
    found = causes.accuse(difference("9", "2"), "2")
    waiting = causes.wait_for_replay(found, [(at(0), at(1))])
    assert waiting.causes == (causes.REPLAY,)
    assert waiting.explained
    assert not waiting.corrected
    assert causes.wait_for_replay(found, [(at(1), at(2))]) == found


def test_a_window_is_explained_when_all_its_keys_are():
    known = causes.excuse(causes.accuse(difference("3", "2"), "2"), causes.LATE, {"k": "3"})
    unknown = causes.accuse(difference("9", "2"), "2")
    other = replace(known, window_start=at(1))
    windows = causes.by_window([known, unknown, other])
    assert {w: v["verdict"] for w, v in windows.items()} == {at(0): "unexplained", at(1): "explained"}
    assert windows[at(0)]["causes"] == [causes.LATE]


def test_another_definition_has_another_version_and_another_name_has_not():
    view = VIEWS["page_views_per_minute"]
    assert definition_version(view) == definition_version(replace(view, name="other"))
    others = [
        replace(view, transform=lambda rows: rows),
        replace(view, allowed_lateness=timedelta(seconds=6)),
        replace(view, policy="side_output"),
    ]
    assert len({definition_version(one) for one in [view, *others]}) == 4


def test_another_contract_makes_another_definition(monkeypatch):
    view = VIEWS["page_views_per_minute"]
    before = definition_version(view)
    monkeypatch.setitem(CONTRACTS, "page_views", replace(CONTRACTS["page_views"], required=()))
    assert definition_version(view) != before
