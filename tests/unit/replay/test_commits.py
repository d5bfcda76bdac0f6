"""What the commits of replays say: of which replay they are, which rows they have replaced, and what came after."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support.commits import ledger_record, ranges, write_commit

from lockstep.ledger.ranges import Range
from lockstep.replay.commits import (
    CLOCKS_DIFFER_MS,
    Action,
    ReplayCommit,
    commits_of_replay,
    is_partly_promoted,
    promoted_over,
)
from lockstep.replay.plan import Plan, Target
from lockstep.replay.record import Replay
from lockstep.replay.request import Request

START = datetime(2026, 11, 10, 10, tzinfo=UTC)
GOLD = "gold.page_views_per_minute"
OPENED_AT = 10 * CLOCKS_DIFFER_MS
TAKEN = ranges({0: (0, 9)})
REPLAY = Replay(
    id="mine",
    by="me",
    request=Request(reason="why not", versions=f"{GOLD}@1..2"),
    opened_at=OPENED_AT,
    plan=Plan(layers=("gold",), parts=(), targets=(Target(view="page_views_per_minute"),)),
)


def committed(settings, version, replay=None, action=Action.PROMOTE, timestamp=OPENED_AT, hours=(0, 1)):
    """A commit of a replay, or of a normal run, to gold."""
    span = [(START + timedelta(hours=h)).isoformat() for h in hours]
    names = {"replay": replay, "stage": action.value, "span": span} if replay else {}
    write_commit(settings, GOLD, version, ledger_record(TAKEN, seq=version, **names), timestamp=timestamp)


def test_the_commits_of_a_replay_are_found_among_all_others(settings):
    committed(settings, 1)
    committed(settings, 2, "mine")
    committed(settings, 3, "other")
    committed(settings, 4, "mine", Action.UNDO)
    commits = commits_of_replay(settings, GOLD, REPLAY)
    assert {action: commit.version for action, commit in commits.items()} == {Action.PROMOTE: 2, Action.UNDO: 4}
    assert commits[Action.PROMOTE].span == (START, START + timedelta(hours=1))
    assert commits[Action.PROMOTE].ranges == tuple(TAKEN)
    assert is_partly_promoted(settings, REPLAY)


def test_commits_from_before_the_plan_are_not_read(settings):
    committed(settings, 1, "mine", timestamp=OPENED_AT - CLOCKS_DIFFER_MS - 1)
    committed(settings, 2)
    assert commits_of_replay(settings, GOLD, REPLAY) == {}
    assert not is_partly_promoted(settings, REPLAY)


def test_what_was_promoted_over_a_replay_counts_until_it_is_undone(settings):
    committed(settings, 1, "before")
    committed(settings, 2, "mine")
    committed(settings, 3, "undone")
    committed(settings, 4, "stays")
    committed(settings, 5, "undone", Action.UNDO)
    mine = commits_of_replay(settings, GOLD, REPLAY)[Action.PROMOTE]
    assert [later.replay for later in promoted_over(settings, GOLD, mine)] == ["stays"]


def commit(**more):
    return ReplayCommit(version=1, replay="mine", stage="promote", **more)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [((0, 1), (1, 2), False), ((0, 2), (1, 3), True), ((0, 3), (1, 2), True), ((0, 0), (5, 6), True)],
)
def test_views_overlap_in_time_and_an_empty_span_is_a_whole_view(one, other, expected):
    left, right = (commit(span=tuple(START + timedelta(hours=h) for h in hours)) for hours in (one, other))
    assert left.overlaps(right) == right.overlaps(left) == expected


@pytest.mark.parametrize(("other", "expected"), [((0, 5, 9), False), ((0, 4, 9), True), ((1, 0, 9), False)])
def test_streams_overlap_in_offsets(other, expected):
    left, right = (commit(replayed=(Range("t", "i", p, start, end),)) for p, start, end in ((0, 0, 5), other))
    assert left.overlaps(right) == right.overlaps(left) == expected
