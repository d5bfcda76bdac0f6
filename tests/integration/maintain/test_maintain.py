"""Housekeeping compacts and archives, and removes nothing that a reader may still need."""

from pathlib import Path

import pytest

from lockstep import lake, ledger
from lockstep.definition.tables import bronze_of
from lockstep.ingest.bronze import ingest
from lockstep.lake import compaction
from lockstep.maintain import maintain
from lockstep.maintain.run import MaintenanceFailed


def test_small_files_become_one_every_version_stays_readable_and_the_ledger_is_archived(
    spark, settings, stream, shop, rows, monkeypatch
):
    monkeypatch.setattr(compaction, "SMALL_FILES", 3)
    for n in range(3):
        shop.view(f"e{n}", n)
        shop.flush()
        ingest(spark, settings, stream, "run")
    table = bronze_of(stream)
    before = sorted(row["offset"] for row in rows(table))
    results = {result.table: result for result in maintain(spark, settings, [table], "run")}
    assert (results[table].files_before, results[table].files_after) == (3, 1)
    assert sorted(row["offset"] for row in rows(table)) == before
    first = ledger.origin(settings, table)
    assert [lake.read(spark, settings, table, version).count() for version in (1, 2, 3)] == [1, 2, 3], first
    archived = [row for row in rows("ops.ledger") if row["table"] == table]
    assert sorted({row["seq"] for row in archived}) == [1, 2, 3]
    maintain(spark, settings, [table], "again")
    assert len([row for row in rows("ops.ledger") if row["table"] == table]) == len(archived)
    assert len(list(Path(lake.path(settings, table)).glob("*.parquet"))) == 4


def test_a_table_with_trouble_is_named_and_the_others_are_looked_after(spark, settings, stream, shop, rows):
    shop.view("e1", 1)
    shop.flush()
    ingest(spark, settings, stream, "run")
    table, broken = bronze_of(stream), f"bronze.a_broken_{stream.name}"
    log = Path(lake.path(settings, broken)) / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{")
    with pytest.raises(
        MaintenanceFailed, match=f"The housekeeping: 1 failed, the others are done:\n  {broken}: "
    ) as failure:
        maintain(spark, settings, [broken, table], "run")
    assert table not in str(failure.value).replace(broken, "")
    assert {row["seq"] for row in rows("ops.ledger") if row["table"] == table} == {1}


def test_the_ledger_goes_on_after_housekeeping(spark, settings, stream, shop):
    shop.view("e1", 1)
    shop.flush()
    entry = ingest(spark, settings, stream, "run")
    maintain(spark, settings, [bronze_of(stream)], "run")
    assert ledger.untouched(settings, entry)
    shop.view("e2", 2)
    shop.flush()
    assert ingest(spark, settings, stream, "run").seq == 2
