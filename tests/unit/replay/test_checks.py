"""The rule that may promote a replay, and the ids of replays."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lockstep.replay import checks
from lockstep.replay.checks import check_id, check_rule, check_undoable
from lockstep.replay.parse import parse
from lockstep.replay.request import ReplayRefused
from lockstep.replay.stages import Compared


def request(**more):
    return parse({"reason": "a test of rules", "versions": "bronze.page_views@1..2", "approve": "by_rule"} | more)


def compared(changed, windows, checks=None):
    return Compared(tables={}, changed=changed, windows=windows, checks=checks or {})


def test_the_rule_is_a_share_and_a_number_of_windows():
    check_rule(request(), compared(1, 10))
    check_rule(request(max_changed_percent=0), compared(0, 10))
    check_rule(request(max_changed_percent=0), compared(0, 0))
    check_rule(request(max_changed_percent=100, max_changed_windows=2), compared(2, 10))
    with pytest.raises(ReplayRefused, match=r"2 of 10 windows would change \(20.0 %\), and the rule allows 10 %"):
        check_rule(request(), compared(2, 10))
    with pytest.raises(ReplayRefused, match="3 windows would change, and the rule allows 2"):
        check_rule(request(max_changed_percent=100, max_changed_windows=2), compared(3, 10))


def test_a_suite_that_does_not_hold_is_reason_enough():
    with pytest.raises(ReplayRefused, match=r"gold.v would not meet its suite: page is null"):
        check_rule(request(), compared(0, 10, {"gold.v": ["page is null"]}))


@pytest.mark.parametrize("replay", ["abc", "x" * 41, "A-replay", "-abcd", "a_bcd", "abcd'--", "abcd\n", ""])
def test_an_id_that_cannot_be_a_part_of_a_name_is_refused(replay):
    with pytest.raises(ReplayRefused, match="4 to 40 small letters"):
        check_id(replay)


def test_an_undo_that_would_bring_back_what_was_erased_is_refused(monkeypatch):
    promoted = SimpleNamespace(versions={"silver.page_views": 3, "gold.v": 8})
    replay = cast(Any, SimpleNamespace(id="abcd", opened_at=time.time() * 1000, promoted=promoted, state="promoted"))
    settings = cast(Any, SimpleNamespace(retain_hours=1))

    def undo(first):
        monkeypatch.setattr(checks.erased, "first_version", lambda _, table: first if table == "gold.v" else 0)
        check_undoable(settings, replay)

    monkeypatch.setattr(checks, "is_partly_promoted", lambda *_: True)
    monkeypatch.setattr(checks, "committed_tables", lambda *_: {})
    for first in (8, 9):
        with pytest.raises(ReplayRefused, match=r"Rows of gold\.v were erased since the replay abcd was promoted"):
            undo(first)
    undo(7)
