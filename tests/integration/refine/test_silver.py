"""Silver has each event once; what cannot be believed is in quarantine; the sums add up."""

from pathlib import Path

from confluent_kafka import Producer
from tests.support.committed import until_no_transaction_is_open

from lockstep import lake, tasks
from lockstep.control.leases import lease
from lockstep.errors import LeaseHeld
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config
from lockstep.ledger.ranges import size
from lockstep.refine.silver import refine


def test_every_row_of_bronze_is_accounted_for(spark, settings, stream, shop, rows):
    for n in range(10):
        shop.view(f"e{n}", n)
    shop.view("e3", 3, arrives_after=2)
    shop.view("e3", 3, arrives_after=3)
    shop.heartbeat(60)
    poison = {
        b"": "empty",
        b"{broken": "malformed",
        b"null": "malformed",
        b"[1, 2]": "malformed",
        b'{"event_id": "x", "event_time": "yesterday", "user_id": "u", "page": "/"}': "malformed",
        b'{"event_id": "x"}': "missing event_time",
        b'{"event_id": "y", "event_time": "2036-01-01T00:00:00Z", "user_id": "u", "page": "/"}': "from the future",
    }
    for value in poison:
        shop.raw(value, 20)
    shop.flush()
    bronze, silver = ingest(spark, settings, stream, "run"), refine(spark, settings, stream, "run")
    assert silver.counts == {"silver": 10, "duplicates": 2, "quarantined": len(poison), "markers": 3}
    assert sum(silver.counts.values()) == bronze.rows
    assert sorted(row["event_id"] for row in rows(f"silver.{stream.name}")) == [f"e{n}" for n in range(10)]
    assert {bytes(r["_value"]): r["_reason"] for r in rows(f"quarantine.{stream.name}")} == poison


def test_a_duplicate_is_known_across_runs_and_the_first_in_the_log_stays(spark, settings, stream, shop, rows):
    shop.view("e1", 0, page="/first")
    shop.flush()
    ingest(spark, settings, stream, "one")
    refine(spark, settings, stream, "one")
    shop.view("e1", 1, page="/second")
    shop.view("e2", 1)
    shop.flush()
    ingest(spark, settings, stream, "two")
    entry = refine(spark, settings, stream, "two")
    assert (entry.counts["silver"], entry.counts["duplicates"]) == (1, 1)
    assert entry.totals == {"silver": 2, "duplicates": 1, "quarantined": 0, "markers": 0}
    assert {r["event_id"]: r["page"] for r in rows(f"silver.{stream.name}")} == {"e1": "/first", "e2": "/"}


def test_offsets_of_an_aborted_transaction_have_no_rows_and_are_refined(spark, settings, stream, shop):
    shop.view("e1", 0)
    shop.flush()
    ingest(spark, settings, stream, "one")
    refine(spark, settings, stream, "one")
    producer = Producer(confluent_config(settings) | {"transactional.id": stream.topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(stream.topic, b"{}", partition=0)
    producer.flush()
    producer.abort_transaction()
    until_no_transaction_is_open(settings, stream.topic)
    taken = ingest(spark, settings, stream, "two")
    assert (taken.rows, size(taken.ranges)) == (0, 2), "the record and the marker of its transaction"
    assert refine(spark, settings, stream, "two").ranges == taken.ranges


def test_rows_whose_task_died_with_its_work_done_still_wait_for_silver(spark, settings, stream, shop):
    shop.view("e1", 0)
    shop.flush()
    ingest(spark, settings, stream, "died before it could tell")
    assert ingest(spark, settings, stream, "its second try") is None
    assert stream.name in tasks.unrefined()
    refine(spark, settings, stream, "run")
    assert stream.name not in tasks.unrefined()


def test_an_id_is_forgotten_after_the_contracts_time(spark, settings, stream, shop):
    shop.view("e1", 0)
    shop.view("e1", 23 * 3600)
    shop.view("e1", 25 * 3600)
    shop.flush()
    ingest(spark, settings, stream, "run")
    assert refine(spark, settings, stream, "run").counts["duplicates"] == 1


def test_a_run_that_died_between_quarantine_and_silver_is_finished_with_the_same_ranges(
    spark, settings, stream, shop, rows
):
    shop.raw(b"{broken", 0)
    shop.view("e1", 1)
    shop.flush()
    ingest(spark, settings, stream, "run")
    first = refine(spark, settings, stream, "run")
    spark.sql(f"DROP TABLE silver.{stream.name}")  # external: the catalog forgets it, the files stay
    _forget_newest_commit(settings, f"silver.{stream.name}")
    shop.raw(b"{broken again", 2)
    shop.flush()
    ingest(spark, settings, stream, "run")
    again = refine(spark, settings, stream, "run")
    assert again.ranges == first.ranges
    rest = refine(spark, settings, stream, "run")
    assert rest.counts["quarantined"] == 1
    assert len(rows(f"quarantine.{stream.name}")) == 2


def _forget_newest_commit(settings, table):
    log = Path(lake.path(settings, table)) / "_delta_log"
    newest = max(log.glob("*.json"))
    newest.unlink()
    newest.with_suffix(".crc").unlink(missing_ok=True)


def test_a_second_writer_is_refused_by_name(settings, stream):
    table = f"silver.{stream.name}"
    with lease(settings, table, "scheduled__1"):
        try:
            with lease(settings, table, "manual__2", wait_seconds=1):
                raise AssertionError("two writers hold one table")
        except LeaseHeld as refusal:
            assert f"lockstep:{table}:scheduled__1" in str(refusal)
    with lease(settings, table, "manual__2", wait_seconds=1) as free:
        assert free.closed == 0
