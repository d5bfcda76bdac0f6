"""The write of a dead task commits in the middle of the retry: the retry says so, and the next one continues after it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.integration.crash.flow import recover, violations
from tests.support.shop import START

from lockstep import lake, ledger
from lockstep.batch import rollup
from lockstep.definition.tables import Tables, bronze_of, gold_of
from lockstep.errors import Overtaken
from lockstep.ingest import bronze
from lockstep.lake import writes
from lockstep.refine import silver
from lockstep.refine.small_slice import parsed, small_slice


def half(ranges):
    return [replace(r, end=(r.start + r.end) // 2) for r in ranges]


@pytest.mark.slow
def test_a_dead_ingest_comes_in_with_fewer_offsets(spark, settings, stream, view, traffic, monkeypatch):
    traffic.burst(20)
    monkeypatch.setattr(writes, "SMALL_ROWS", 0)
    read, table = bronze.read_range, bronze_of(stream)

    def overtaken(session, config, ranges):
        monkeypatch.undo()
        record = ledger.record("ingest", None, "dead", half(ranges))
        lake.append(read(session, config, half(ranges)), config, table, ledger.txn(table, record), record)
        return read(session, config, ranges)

    monkeypatch.setattr(bronze, "read_range", overtaken)
    with pytest.raises(Overtaken, match="entry 1 is of run dead"):
        bronze.ingest(spark, settings, stream, "retry")
    recover(settings, stream, view)
    assert violations(settings, stream, view, traffic.sent) == []


@pytest.mark.slow
def test_a_dead_run_comes_in_while_a_backfill_computes_the_day_again(
    spark, settings, stream, view, traffic, monkeypatch
):
    """Neither takes offsets, so their entries are alike but for the run."""
    traffic.burst(20)
    recover(settings, stream, view)
    write, table, newest = rollup._replace, gold_of(view), ledger.latest(settings, gold_of(view))

    def overtaken(silver, config, of, span, record):
        monkeypatch.undo()
        dead = record | {"run_id": "dead", "span": None}
        lake.append_record(config, table, ledger.txn(table, dead), dead)
        write(silver, config, of, span, record)

    monkeypatch.setattr(rollup, "_replace", overtaken)
    with pytest.raises(Overtaken, match=f"entry {newest.seq + 1} is of run dead"):
        rollup.rebuild(spark, settings, view, START, START + timedelta(hours=1), "backfill")
    again = rollup.rebuild(spark, settings, view, START, START + timedelta(hours=1), "backfill")
    assert (again.seq, again.run_id) == (newest.seq + 2, "backfill")
    assert violations(settings, stream, view, traffic.sent) == []


def test_a_dead_refine_comes_in_when_quarantine_is_already_ahead_of_it(
    spark, settings, stream, view, traffic, monkeypatch
):
    traffic.burst(60)
    ranges = bronze.ingest(spark, settings, stream, "run").ranges

    def overtaken(point):
        if point == "quarantine-committed":
            monkeypatch.undo()
            found = small_slice(settings, stream, None, parsed(spark, settings, stream, half(ranges)))
            silver._write(spark, settings, stream, Tables.of(stream), None, half(ranges), found, "dead")

    monkeypatch.setattr(silver, "failpoint", overtaken)
    with pytest.raises(Overtaken, match="entry 1 is of run dead"):
        silver.refine(spark, settings, stream, "retry")
    recover(settings, stream, view)
    assert violations(settings, stream, view, traffic.sent) == []
