"""The proof that a ledger is whole."""

from dataclasses import replace

import pytest
from tests.support.commits import entry, ranges

from lockstep.errors import LedgerBroken
from lockstep.ledger.chain import check_tip, problems
from lockstep.ledger.entries import Entry, SignedFor, signature
from lockstep.ledger.heads import Head


def an_entry(seq: int, start: int, end: int, **fields: int) -> Entry:
    return entry(ranges({0: (start, end)}, "orders"), "bronze.orders", seq, **fields)


CHAIN = [an_entry(1, 0, 10), an_entry(2, 10, 25), an_entry(3, 25, 25), an_entry(4, 25, 40)]


def test_a_contiguous_chain_has_no_problems():
    assert list(problems(CHAIN)) == []


def test_holes_in_the_log_leave_fewer_rows_than_offsets_and_are_no_problem():
    assert list(problems([an_entry(1, 0, 10, rows=7)])) == []


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ([CHAIN[0], CHAIN[2]], "follows entry 1"),
        ([CHAIN[0], replace(CHAIN[3], seq=2)], r"misses offsets \[10, 25\)"),
        ([CHAIN[0], an_entry(2, 8, 20)], r"repeats offsets \[8, 10\)"),
        ([an_entry(1, 0, 10, rows=11)], "11 rows out of 10 offsets"),
        ([CHAIN[0], replace(CHAIN[1], ranges=())], "orders-0 is missing"),
    ],
)
def test_every_break_of_the_chain_is_named(broken, says):
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(list(problems(broken)))


def test_a_chain_goes_on_under_the_id_of_another_topic_only_where_somebody_has_signed_for_it():
    other = entry(ranges({0: (10, 10)}, "orders", topic_id="id-2"), "bronze.orders", 2)
    assert any("orders-0 is missing" in problem for problem in problems([CHAIN[0], other]))
    signed = replace(other, signed=signature(SignedFor.RECREATION, "an operator", "created again"))
    assert list(problems([CHAIN[0], signed])) == []
    late = replace(signed, ranges=tuple(ranges({0: (12, 12)}, "orders", topic_id="id-2")))
    assert any("misses offsets [10, 12)" in problem for problem in problems([CHAIN[0], late]))


def test_a_missing_newest_commit_is_found_against_the_head():
    with pytest.raises(LedgerBroken, match=r"ends with entry 2 .* but entry 3 .* was committed"):
        check_tip("bronze.orders", CHAIN[1], Head(3, 3))
    with pytest.raises(LedgerBroken, match="ends with nothing"):
        check_tip("bronze.orders", None, Head(3, 3))
    check_tip("bronze.orders", CHAIN[2], Head(2, 2))
    check_tip("bronze.orders", CHAIN[2], None)
