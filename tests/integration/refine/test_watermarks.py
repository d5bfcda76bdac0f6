"""Silver says of each event which watermark its partition had when it came, however the log is cut into runs."""

from collections import defaultdict
from datetime import timedelta
from random import Random

import pytest
from tests.support.shop import START

from lockstep import ledger
from lockstep.definition.tables import Tables
from lockstep.ingest import bronze
from lockstep.lake import writes
from lockstep.refine import silver


@pytest.mark.parametrize("small_rows", [20_000, 0], ids=["without Spark", "with Spark"])
def test_the_watermark_follows_the_newest_timestamp_of_the_partition(
    spark, settings, stream, shop, rows, monkeypatch, small_rows
):
    monkeypatch.setattr(writes, "SMALL_ROWS", small_rows)
    dice = Random(11)
    for n in range(60):
        shop.view(f"e{n}", dice.uniform(0, 60), arrives_after=dice.choice([0, 1, 8]), user_id=f"u{n % 7}")
    shop.raw(b"{broken", 80, key="u1")
    for n in range(60, 80):
        shop.view(f"e{n}", dice.uniform(0, 60), user_id=f"u{n % 7}")
    shop.flush()
    limited = settings.model_copy(update={"max_offsets_per_run": 25})
    while bronze.ingest(spark, limited, stream, "run") or silver.refine(spark, limited, stream, "run"):
        continue
    newest, expected = defaultdict(lambda: START), {}
    for row in sorted(rows(Tables.of(stream).bronze), key=lambda row: (row["partition"], row["offset"])):
        newest[row["partition"]] = max(newest[row["partition"]], _utc(row["timestamp"]))
        expected[row["partition"], row["offset"]] = newest[row["partition"]] - timedelta(seconds=2)
    found = {(r["_partition"], r["_offset"]): _utc(r["_watermark"]) for r in rows(Tables.of(stream).log)}
    assert len(found) == 80
    assert found == {place: expected[place] for place in found}
    entry = ledger.latest(settings, Tables.of(stream).log)
    assert entry.newest == {p: round(at.timestamp() * 1000) for p, at in newest.items()}


def _utc(moment):
    return moment if moment.tzinfo else moment.replace(tzinfo=START.tzinfo)
