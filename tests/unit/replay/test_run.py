"""The ids of new replays."""

from lockstep.replay.checks import check_id
from lockstep.replay.parse import parse
from lockstep.replay.run import identify

REQUEST = parse({"reason": "a test of ids", "versions": "bronze.page_views@1..2"})


def test_an_id_is_the_same_for_the_same_run_and_another_for_each_other():
    assert identify(REQUEST, "run 1") == identify(REQUEST, "run 1") != identify(REQUEST, "run 2")
    assert identify(REQUEST) != identify(REQUEST)
    check_id(identify(REQUEST))
