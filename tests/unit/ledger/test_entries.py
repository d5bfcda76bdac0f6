"""The ledger, as it is read back from a Delta log."""

import pytest
from tests.support.commits import commit_text, entry, ledger_record, ranges, write_commit

from lockstep import lake, ledger
from lockstep.errors import LedgerBroken, Overtaken, TopicRecreated
from lockstep.lake import parse_commit
from lockstep.ledger.ranges import Range

ORDERS = "bronze.orders"


def test_a_commit_says_what_it_took_and_how_far_each_partition_had_come():
    taken = [Range("orders", "id-1", 0, 0, 10), Range("orders", "id-1", 1, 5, 5)]
    before = entry(ranges({0: (0, 0)}, "orders"), ORDERS, newest={0: 77})
    text = commit_text(ledger.record("ingest", before, "run-1", taken), rows=10)
    read = ledger.entry(parse_commit(ORDERS, 0, text))
    assert (read.seq, read.run_id, read.rows, read.ranges) == (2, "run-1", 10, tuple(taken))
    assert read.newest == {0: 77}, "a commit that says nothing new, such as a replay's, keeps it"
    text = commit_text(ledger.record("refine", read, "run-1", taken, newest={0: 99, 1: 5}))
    assert ledger.entry(parse_commit(ORDERS, 0, text)).newest == {0: 99, 1: 5}


def test_sums_go_on_over_all_entries():
    first = entry(ranges({0: (0, 10)}), counts={"silver": 9, "markers": 1}, totals={"silver": 9, "markers": 1})
    record = ledger.record("refine", first, "run-2", ranges({0: (10, 14)}), counts={"silver": 3, "duplicates": 1})
    read = ledger.entry(parse_commit("silver.page_views", 2, commit_text(record)))
    assert read.totals == {"silver": 12, "markers": 1, "duplicates": 1}


def test_unknown_fields_are_counted_over_all_entries_and_only_the_most_frequent_ones():
    first = entry(ranges({0: (0, 10)}), unknown={f"f{n:02}": n for n in range(ledger.MOST_UNKNOWN + 1)})
    record = ledger.record("refine", first, "run-2", ranges({0: (10, 14)}), unknown={"f01": 3, "new": 4})
    read = ledger.entry(parse_commit("silver.page_views", 2, commit_text(record)))
    assert record["unknown"] == {"f01": 3, "new": 4}
    assert (read.unknown["f01"], read.unknown["f50"], read.unknown["new"]) == (4, 50, 4)
    assert "f00" not in read.unknown
    assert len(ledger.record("rollup", read, "run-3", [])["unknown_before"]) == ledger.MOST_UNKNOWN


def test_an_entry_that_the_log_does_not_have_is_not_committed(settings):
    record = ledger_record(ranges({0: (10, 20)}, "orders"), seq=2)
    write_commit(settings, ORDERS, 0, ledger_record(ranges({0: (0, 10)}, "orders"), seq=1))
    with pytest.raises(LedgerBroken, match="entry 2 was acknowledged, but its log ends with 1"):
        ledger.committed(settings, ORDERS, record)
    write_commit(settings, ORDERS, 1, ledger_record(ranges({0: (10, 17)}, "orders"), seq=2))
    with pytest.raises(Overtaken, match="Run run-1 again"):
        ledger.committed(settings, ORDERS, record)
    write_commit(settings, ORDERS, 1, record)
    assert ledger.committed(settings, ORDERS, record).version == 1


def test_housekeeping_leaves_a_table_untouched_and_another_writer_does_not(settings):
    write_commit(settings, ORDERS, 0, ledger_record(ranges({0: (0, 10)}, "orders")))
    write_commit(settings, ORDERS, 1, operation="OPTIMIZE")
    write_commit(settings, ORDERS, 2, {"writer": lake.WIDEN, "columns": {"n": "bigint"}})
    newest = ledger.latest(settings, ORDERS)
    assert ledger.untouched(settings, newest)
    assert ledger.by_this_code(settings, newest)
    write_commit(settings, ORDERS, 3, operation="UPDATE")
    assert not ledger.untouched(settings, newest)


def test_a_table_has_only_grown_while_nobody_replays_it_and_its_log_reaches_back(settings):
    for version in (4, 5):
        write_commit(settings, ORDERS, version, ledger_record(ranges({0: (0, 10)}, "orders"), seq=version))
    write_commit(settings, ORDERS, 6, operation="OPTIMIZE")
    assert ledger.only_grew(settings, ORDERS, 4)
    assert not ledger.only_grew(settings, ORDERS, 3), "a replay may have been in what the log no longer has"
    write_commit(settings, ORDERS, 7, ledger_record(ranges({0: (10, 10)}, "orders"), seq=6, replay="r"))
    assert not ledger.only_grew(settings, ORDERS, 5)
    assert ledger.only_grew(settings, ORDERS, 7)


def test_a_partition_that_a_downstream_table_has_not_seen_starts_where_the_source_did(settings):
    bronze, other = "bronze.page_views", {2: (5, 9)}
    write_commit(settings, bronze, 0, ledger_record(ranges({0: (100, 110)}), seq=1))
    write_commit(settings, bronze, 1, ledger_record(ranges({0: (110, 120), 1: (30, 40)}), seq=2))
    source = ledger.latest(settings, bronze)
    newest = entry([*ranges({0: (100, 115)}), *ranges(other, "orders")], "gold.x")
    taken = [(r.partition, r.start, r.end) for r in ledger.pending(settings, source, newest, 1000)]
    assert taken == [(0, 115, 120), (1, 30, 40)]
    assert ledger.pending(settings, None, newest, 1000) == []


def test_a_downstream_table_follows_its_source_to_a_topic_that_was_created_again(settings):
    bronze, newest = "bronze.page_views", entry(ranges({0: (0, 10)}), "silver.page_views")
    write_commit(settings, bronze, 0, ledger_record(ranges({0: (0, 10)}), seq=1))
    write_commit(settings, bronze, 1, ledger_record(ranges({0: (10, 12)}, topic_id="id-2"), seq=2))
    source = ledger.latest(settings, bronze)
    assert ledger.pending(settings, source, newest, 1000) == ranges({0: (10, 12)}, topic_id="id-2")
    with pytest.raises(TopicRecreated):
        ledger.pending(settings, source, entry(ranges({0: (0, 10)}, topic_id="id-0"), "silver.page_views"), 1000)
