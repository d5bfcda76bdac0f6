"""The record of a replay: which stages count, and what was written is read back."""

import pytest

from lockstep.replay.plan import Plan
from lockstep.replay.record import TABLE, Replay, find, read, replays
from lockstep.replay.request import ReplayRefused, Request
from lockstep.replay.stages import Approved, Compared, Shadowed, Stage, StageResult

REQUEST = Request(reason="why not", versions="bronze.page_views@1..2")
PLAN = Plan(layers=("gold",), parts=(), targets=())
SHADOWED = Shadowed(bronze={}, silver={}, gold={}, code_version="c", seconds=1.5)
COMPARED = Compared(tables={}, windows=3, changed=1, checks={})


@pytest.fixture
def written(ops_records):
    """Writes the results of stages as the product does it."""

    def write(*results: StageResult, replay: str = "first"):
        for result in results:
            stage = result.stage.value
            names = {"replay": replay, "stage": stage, "by": "me", "request": REQUEST.as_dict()}
            ops_records.write(TABLE.name, names | {"detail": result.model_dump(mode="json")}, f"{replay}/{stage}")

    return write


def test_a_stage_that_was_done_before_another_was_done_again_does_not_count():
    order = (Stage.PLANNED, Stage.COMPARED, Stage.SHADOWED)
    replay = Replay("id", "me", REQUEST, 0, PLAN, order=order)
    assert (replay.state, replay.is_open) == ("shadowed", True)
    assert not replay.has(Stage.COMPARED, after=Stage.SHADOWED)
    assert replay.has(Stage.SHADOWED, after=Stage.PLANNED)


def test_the_results_of_all_stages_are_read_back_as_they_were_written(settings, written):
    written(PLAN, SHADOWED, COMPARED, Approved(by="you"))
    replay = find(settings, "first")
    assert (replay.plan, replay.shadowed, replay.compared) == (PLAN, SHADOWED, COMPARED)
    assert replay.approved == Approved(by="you")
    assert (replay.by, replay.request, replay.opened_at, replay.state) == ("me", REQUEST, 1000, Stage.APPROVED)
    assert list(replay.results) == ["planned", "shadowed", "compared", "approved"]
    assert replay.promoted is None


def test_a_stage_that_was_done_twice_counts_as_it_was_done_last(settings, written):
    again = SHADOWED.model_copy(update={"code_version": "d"})
    written(PLAN, SHADOWED, COMPARED, again)
    replay = find(settings, "first")
    assert replay.shadowed == again
    assert replay.order == (Stage.PLANNED, Stage.COMPARED, Stage.SHADOWED)


def test_the_replay_that_was_opened_last_comes_first(settings, written):
    written(PLAN, SHADOWED)
    written(PLAN, replay="second")
    assert [replay.id for replay in replays(settings)] == ["second", "first"]


def test_a_replay_that_does_not_exist_is_refused_by_name(settings, written):
    assert read(settings, "none") is None
    with pytest.raises(ReplayRefused, match="There is no replay none"):
        find(settings, "none")
