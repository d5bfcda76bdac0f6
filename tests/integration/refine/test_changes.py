"""Changes of a source table at Debezium's edges: deletes that have a key only, TRUNCATE, and LSNs that go back.

The records have the form in which Debezium 3.6 sends them.
"""

from dataclasses import replace

import pytest
from tests.integration.refine.engines import mostly_without_spark
from tests.support.shop import START
from tests.support.slow import slow

from lockstep import ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.lake import writes
from lockstep.refine import silver
from lockstep.refine.source_order import SourceWentBack


def test_a_delete_that_has_its_key_only_deletes_and_one_without_a_key_says_so(source):
    source.insert("1", 10)
    source.insert("2", 20)
    source.delete(30, order_id="1")
    source.delete(40, kind="sale")
    (entry,) = source.refine()
    assert source.orders() == {"2": "sale"}
    assert source.reasons() == ["missing order_id"]
    assert entry.counts == {"silver": 3, "duplicates": 0, "quarantined": 1, "markers": 0}


@pytest.mark.parametrize("said", ["__debezium_unavailable_value", "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="])
def test_a_value_that_the_log_of_the_source_does_not_have_is_no_value_of_the_row(source, said):
    source.insert("1", 10)
    source.insert("1", 20, kind=said)
    source.refine()
    assert source.orders() == {"1": "sale"}
    assert source.reasons() == ["unavailable kind"]


def test_the_history_of_a_row_is_there_with_its_first_change_and_is_found_by_its_key(source):
    source.insert("1", 1_000)
    source.insert("2", 2_000)
    source.refine()
    source.insert("1", 3_000, kind="changed")
    source.delete(4_000, order_id="1")
    source.refine()
    history = source.spark.table(Tables.of(source.contract).history).where("order_id = '1'")
    known_now = history.where("known_to IS NULL").orderBy("valid_from").collect()
    assert [(row.kind, row.valid_from.second, row.valid_to.second) for row in known_now] == [
        ("sale", 1, 3),
        ("changed", 3, 4),
    ]
    assert history.where("is_current").isEmpty()
    assert "DataFilters: [isnotnull(order_id" in history._explain_string()


def test_the_key_of_a_row_is_required_whether_or_not_the_contract_says_so(source, monkeypatch):
    source.contract = replace(source.contract, required=())
    monkeypatch.setitem(CONTRACTS, source.contract.name, source.contract)
    source.insert(None, 10)
    source.refine()
    assert source.reasons() == ["missing order_id"]


def test_a_truncate_ends_the_rows_before_it_and_no_row_after_it(source, either_way):
    source.insert("1", 10)
    source.insert("2", 20)
    source.refine()
    source.insert("3", 30, commit=29)
    source.truncate(40)
    source.insert("1", 50, kind="again", commit=39)
    source.insert("4", 60)
    first, second = source.refine()
    assert first.counts["markers"] == 1
    assert source.orders() == {"1": "again", "4": "sale"}
    assert second.counts == {"silver": 2, "duplicates": 0, "quarantined": 0, "markers": 0}
    log = {(r["order_id"], r["_op"]): r for r in source._rows(Tables.of(source.contract).log)}
    assert (log["2", "d"]["_lsn"], log["2", "d"]["kind"]) == (40, "sale"), "as if the source had deleted it"


def test_a_truncate_that_comes_twice_and_a_run_that_dies_after_its_deletes_do_no_harm(source, monkeypatch):
    source.insert("1", 10)
    source.truncate(20)
    source.truncate(20)
    with monkeypatch.context() as patch:
        patch.setattr(silver, "failpoint", lambda name: pytest.fail(name) if name == "deletes-written" else None)
        with pytest.raises(pytest.fail.Exception, match="deletes-written"):
            source.refine()
    silver.refine(source.spark, source.settings, source.contract, "again")
    (entry,) = source.refine()
    assert source.orders() == {}
    assert (entry.counts["silver"], entry.counts["duplicates"]) == (1, 1)


@pytest.mark.parametrize("source", [2], indirect=True)
def test_what_a_slower_partition_brings_after_the_truncate_is_ended_too(source):
    source.insert("1", 10, partition=0)
    source.truncate(30, partition=1)
    source.refine()
    assert source.orders() == {}
    source.insert("2", 20, partition=0)
    source.insert("3", 40, partition=0)
    source.refine()
    assert source.orders() == {"3": "sale"}


@pytest.mark.parametrize("runs", [slow(1), 2])
def test_records_that_debezium_sends_again_are_known_also_after_the_dedup_window(source, runs):
    source.contract = replace(source.contract, dedup_window=source.contract.dedup_window * 0)
    source.insert("1", 10)
    source.insert("2", 20)
    if runs == 2:
        source.refine()
    source.insert("1", 10, again=1)
    source.insert("2", 20, commit=15, again=1)
    source.insert("3", 30)
    source.refine()
    assert source.orders() == {"1": "sale", "2": "sale", "3": "sale"}


@mostly_without_spark
def test_a_run_of_nothing_but_old_changes_is_done(source, either_way):
    source.contract = replace(source.contract, dedup_window=source.contract.dedup_window * 0)
    source.insert("1", 10)
    source.insert("1", 20, kind="newer")
    source.refine()
    source.insert("1", 10, again=1)
    (entry,) = source.refine()
    assert entry.counts["silver"] == 1
    assert source.orders() == {"1": "newer"}


def test_a_snapshot_and_a_transaction_that_was_open_when_it_began_are_no_restored_database(source):
    row = {"order_id": "1", "kind": "sale", "ordered_at": START.isoformat()}
    source.change("r", 100, None, after=row)
    source.insert("2", 90, commit=95)
    source.insert("3", 110, commit=105)
    source.refine()
    assert sorted(source.orders()) == ["1", "2", "3"]


@pytest.mark.parametrize("runs", [slow(1), 2])
def test_a_new_snapshot_ends_the_rows_that_it_does_not_have(source, either_way, runs):
    source.snapshot(100, a="sale", b="sale", c="sale", d="sale")
    source.insert("e", 110)
    source.refine()
    if runs == 2:
        source.insert("f", 120)
        source.refine()
    # b, d and e were deleted, and Debezium was not there. A transaction was open that brought d again.
    source.snapshot(200, after=1, a="sale", c="changed")
    source.insert("d", 190, commit=195, kind="again", again=2)
    source.insert("g", 210, again=2)
    source.refine()
    assert source.orders() == {"a": "sale", "c": "changed", "d": "again", "g": "sale"}
    log = {(r["order_id"], r["_op"]): r for r in source._rows(Tables.of(source.contract).log)}
    ended = [(key, log[key, "d"]["_lsn"]) for key in "be"]
    assert ended == [("b", 101), ("e", 111)], "right after the change that had left it"
    assert source.reasons() == []


@mostly_without_spark
def test_a_snapshot_in_the_middle_of_the_log_has_the_place_where_it_began_and_ends_none_of_its_own_rows(
    source, either_way
):
    source.insert("gone", 80)
    source.insert("a", 90)
    source.refine()
    source.snapshot(90, after=1, commit=89, a="sale", b="sale", c="sale")
    source.refine()
    assert source.orders() == {"a": "sale", "b": "sale", "c": "sale"}


@mostly_without_spark
@pytest.mark.parametrize("runs", [slow(1), 2])
def test_a_snapshot_that_is_read_again_after_changes_that_came_later_is_no_restored_database(source, either_way, runs):
    source.snapshot(90, commit=89, a="sale", b="sale")
    source.insert("b", 110, kind="changed")
    source.insert("c", 120)
    if runs == 2:
        source.refine()
    # Connect was killed before it had noted how far it was: it comes to the request of the snapshot once more.
    source.snapshot(90, after=1, commit=70, a="sale", b="changed", c="sale", d="sale")
    source.insert("b", 110, kind="changed", again=2)
    source.insert("c", 120, again=2)
    source.insert("d", 130, again=2)
    source.refine()
    assert source.orders() == {"a": "sale", "b": "changed", "c": "sale", "d": "sale"}
    assert source.reasons() == []


@mostly_without_spark
@pytest.mark.parametrize("runs", [slow(1), 2])
def test_changes_that_were_produced_again_after_newer_ones_are_no_restored_database(source, either_way, runs):
    """The log was cut, and has grown again: what came to the lost offsets is at its end now."""
    source.insert("a", 100, kind="new")
    source.insert("b", 110)
    if runs == 2:
        source.refine()
    again = {"headers": [("lockstep-produced-again", b"1")], "again": 5}
    source.insert("a", 50, kind="old", **again)
    source.insert("c", 60, **again)
    source.insert("d", 120)
    source.refine()
    assert source.orders() == {"a": "new", "b": "sale", "c": "sale", "d": "sale"}
    source.insert("e", 70)
    with pytest.raises(SourceWentBack, match="below 119 of a commit before it"):
        source.refine()


@pytest.mark.parametrize(
    ("runs", "small"), [(1, 0), (2, 20_000)], ids=["in a run, with Spark", "between runs, without Spark"]
)
def test_lsns_that_go_back_stop_the_stream_and_a_new_generation_goes_on(source, runs, small, monkeypatch):
    monkeypatch.setattr(writes, "SMALL_ROWS", small)
    source.insert("1", 1010)
    source.insert("2", 1020)
    if runs == 2:
        source.refine()
    source.insert("3", 510)
    with pytest.raises(SourceWentBack) as refusal:
        source.refine()
    topic = source.contract.topic
    assert (
        f"{topic}-0: the change at offset 2 has the commit LSN 509 (row LSN 510, generation 1), below 1019 of"
        in str(refusal.value)
    )
    assert "`lockstep snapshot`" in str(refusal.value)
    before = ledger.latest(source.settings, Tables.of(source.contract).log)
    assert (before and before.totals["silver"]) == (2 if runs == 2 else None), "nothing of the run was written"

    source.generation = b"2"
    source.truncate(1)
    source.change("r", 600, None, after={"order_id": "2", "kind": "restored", "ordered_at": START.isoformat()})
    source.insert("4", 620)
    source.refine()
    assert source.orders() == {"2": "restored", "4": "sale"}, "the new generation wins, and what it lacks is deleted"
