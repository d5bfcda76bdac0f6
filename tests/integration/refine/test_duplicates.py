"""Which rows are duplicates does not depend on how the log is cut into runs."""

from datetime import UTC, datetime, timedelta
from random import Random

from lockstep.contracts import CONTRACTS
from lockstep.ingest.bronze import ingest
from lockstep.refine.duplicates import classify
from lockstep.refine.silver import refine

CONTRACT = CONTRACTS["page_views"]
SECONDS = CONTRACT.dedup_window.total_seconds()
PLACE = "event_id STRING, _partition INT, _offset BIGINT, _arrival TIMESTAMP"
COLUMNS = f"{PLACE}, _marker BOOLEAN, _reason STRING, _erased BOOLEAN"
START = datetime(2026, 11, 10, tzinfo=UTC)


def log(dice, partitions=2, rows=150):
    """By partition, ids that come again and again for some days, and times that now and then go back."""
    found = []
    for partition in range(partitions):
        at = 0.0
        for offset in range(rows):
            at += dice.uniform(-0.02, 0.1) * SECONDS
            id = f"{partition}-{dice.randrange(12)}"
            arrival = START + timedelta(milliseconds=round(at * 1000))
            reason = "malformed" if dice.random() < 0.05 else None
            found.append((id, partition, offset, arrival, False, reason, False))
    return found


def kept_by_the_rule(rows):
    """The oracle: go through the log, and remember of each id when it was kept last."""
    last, kept = {}, set()
    for id, partition, offset, arrival, _, reason, _ in rows:
        if reason is None and (id not in last or (arrival - last[id]).total_seconds() > SECONDS):
            last[id] = arrival
            kept.add((partition, offset))
    return kept


def kept_in_runs(spark, rows, ends):
    """What is kept in runs that end at these offsets of every partition."""
    kept = []
    for start, end in zip([0, *ends], [*ends, len(rows)], strict=True):
        run = [row for row in rows if start <= row[2] < end]
        if run:
            times = [row[3] for row in run]
            earlier = spark.createDataFrame(kept, COLUMNS) if kept else None
            new = spark.createDataFrame(run, COLUMNS)
            outcomes = classify(new, earlier, CONTRACT, span=max(times) - min(times)).where("_outcome = 'silver'")
            found = {(row["_partition"], row["_offset"]) for row in outcomes.collect()}
            kept += [row for row in run if row[1:3] in found]
    return {(row[1], row[2]) for row in kept}


def test_the_kept_rows_are_the_same_however_the_log_is_cut(spark):
    dice = Random(14)
    rows = log(dice)
    expected = kept_by_the_rule(rows)
    assert kept_in_runs(spark, rows, []) == expected
    # Runs of some days, and runs that are shorter than the time for which an id is remembered.
    assert kept_in_runs(spark, rows, [60, 64, 100]) == expected
    assert kept_in_runs(spark, rows, [4, 9, 13]) == expected
    outcomes = {row["_outcome"] for row in classify(spark.createDataFrame(rows, COLUMNS), None, CONTRACT).collect()}
    assert outcomes == {"silver", "duplicates", "quarantined"}


def test_a_run_over_days_drops_a_copy_of_the_row_that_it_kept_last(spark, settings, stream, shop):
    for hours in (0, 36, 48):
        shop.view("e1", hours * 3600)
    shop.flush()
    ingest(spark, settings, stream, "run")
    counts = refine(spark, settings, stream, "run").counts
    assert (counts["silver"], counts["duplicates"]) == (2, 1)
