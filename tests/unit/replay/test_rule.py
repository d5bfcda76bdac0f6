"""The rule that may promote a replay, and the diff as somebody reads it who decides."""

import pytest

from lockstep.replay.markdown import diff_as_markdown
from lockstep.replay.request import Refused, parse
from lockstep.replay.run import ID, check_rule, identify


def request(**more):
    return parse({"reason": "a test of rules", "versions": "bronze.page_views@1..2", "approve": "by_rule"} | more)


def compared(changed, windows, checks=None):
    table = {"windows": windows, "equal": windows - changed, "changed": changed, "added": 0, "removed": 0}
    samples = ['2026-11-10 10:00:00: changed, such as {"page":"`{{ x }}`"}'] if changed else []
    return {
        "changed": changed,
        "windows": windows,
        "checks": checks or {},
        "tables": {"gold.v": table | {"samples": samples}},
    }


def test_the_rule_is_a_share_and_a_number_of_windows():
    check_rule(request(), compared(1, 10))
    check_rule(request(max_changed_percent=0), compared(0, 10))
    check_rule(request(max_changed_percent=0), compared(0, 0))
    check_rule(request(max_changed_percent=100, max_changed_windows=2), compared(2, 10))
    with pytest.raises(Refused, match=r"2 of 10 windows would change \(20.0 %\), and the rule allows 10 %"):
        check_rule(request(), compared(2, 10))
    with pytest.raises(Refused, match="3 windows would change, and the rule allows 2"):
        check_rule(request(max_changed_percent=100, max_changed_windows=2), compared(3, 10))


def test_a_suite_that_does_not_hold_is_reason_enough():
    with pytest.raises(Refused, match=r"gold.v would not be as its suite expects: page is null"):
        check_rule(request(), compared(0, 10, {"gold.v": ["page is null"]}))


def test_the_diff_is_a_table_whose_values_are_not_read_as_markup():
    text = diff_as_markdown("abc", compared(2, 10, {"gold.v": ["page is null"]}))
    assert "2 of 10 windows would change" in text
    assert "| gold.v | 10 | 8 | 2 | 0 | 0 |" in text
    assert "'{{ x }}'" in text
    assert "fails its suite: `page is null`" in text


def test_an_id_is_the_same_for_the_same_run_and_another_for_each_other():
    assert identify(request(), "run 1") == identify(request(), "run 1") != identify(request(), "run 2")
    assert identify(request()) != identify(request())
    assert ID.fullmatch(identify(request()))
