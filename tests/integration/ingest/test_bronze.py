"""Bronze holds what the broker acknowledged, once, and its ledger proves it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import KafkaError, Producer
from kafka import TopicPartition
from tests.support.shop import START, Shop, add_partitions

from lockstep import lake, ledger
from lockstep.batch.rollup import roll_up
from lockstep.control import database
from lockstep.definition.tables import Tables, bronze_of, silver_of
from lockstep.errors import DataLoss, LedgerBroken, TopicRecreated
from lockstep.ingest.bronze import accept_gap, ingest
from lockstep.ingest.truncation import accept_recreation
from lockstep.kafka_clients import admin, confluent_config, ensure_topics
from lockstep.lake import writes
from lockstep.ledger import heads
from lockstep.refine.silver import refine


def offsets(rows):
    return sorted((row["partition"], row["offset"]) for row in rows)


def test_bronze_is_exactly_what_the_broker_acknowledged_in_steps_that_join(spark, settings, stream, shop, rows):
    for n in range(50):
        shop.view(f"e{n}", n, user_id=f"u{n % 7}")
    shop.raw(b"\x00\xff not json", 51)
    shop.flush()
    small = settings.model_copy(update={"max_offsets_per_run": 20})
    sizes = [entry.rows for _ in range(4) if (entry := ingest(spark, small, stream, "run"))]
    assert sizes == [20, 20, 11]
    assert offsets(rows(bronze_of(stream))) == sorted(shop.acknowledged)
    assert list(ledger.problems(reversed(list(ledger.entries(settings, bronze_of(stream)))))) == []


def test_a_second_run_with_nothing_new_commits_nothing(spark, settings, stream, shop):
    shop.view("e1", 0)
    shop.flush()
    assert ingest(spark, settings, stream, "run") is not None
    before = len(list(lake.commits(settings, bronze_of(stream))))
    assert ingest(spark, settings, stream, "run") is None
    assert len(list(lake.commits(settings, bronze_of(stream)))) == before


def test_the_raw_bytes_key_headers_and_kafka_time_are_kept(spark, settings, stream, shop, rows):
    shop.raw(b"\x00\xff", 12.5, key="k")
    shop.heartbeat(60)
    shop.flush()
    ingest(spark, settings, stream, "run")
    found = {row["value"]: row for row in rows(bronze_of(stream))}
    assert bytes(found[b"\x00\xff"]["key"]) == b"k"
    assert found[b"\x00\xff"]["timestamp"] == datetime(2026, 11, 10, 10, 0, 12, 500_000)
    assert [h["key"] for h in found[None]["headers"]] == ["lockstep-heartbeat"]


@pytest.mark.parametrize("small", [20_000, 0], ids=["without Spark", "with Spark"])
def test_the_statistics_of_bronze_and_quarantine_have_nothing_of_a_record(
    spark, settings, stream, shop, monkeypatch, small
):
    monkeypatch.setattr(writes, "SMALL_ROWS", small)
    shop.view("e1", 0, user_id="ann")
    shop.raw(b"broken, of ann", 1, key="ann", headers=[("of", b"ann")])
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    for table, of_a_place in ((Tables.of(stream).bronze, ""), (Tables.of(stream).quarantine, "_")):
        files = [stats for commit in lake.commits(settings, table) for stats in commit.files]
        named = {name for stats in files for end in ("minValues", "maxValues") for name in stats.get(end, ())}
        names = {f"{of_a_place}{name}" for name in ("topic", "partition", "offset")}
        others = {"timestamp", "timestamp_type"} if not of_a_place else {"_arrival", "_reason"}
        assert names <= named <= names | others


def test_a_write_that_runs_twice_under_one_transaction_id_is_there_once(spark, settings, stream, shop, rows):
    shop.view("e1", 0)
    shop.flush()
    entry = ingest(spark, settings, stream, "run")
    again = spark.table(bronze_of(stream))
    record = ledger.record("ingest", None, "run", entry.ranges)
    lake.append(again, settings, bronze_of(stream), ledger.txn(bronze_of(stream), record), record)
    assert len(rows(bronze_of(stream))) == 1


def test_a_newest_commit_that_vanished_stops_the_next_run(spark, settings, stream, shop):
    for n in range(2):
        shop.view(f"e{n}", n)
        shop.flush()
        ingest(spark, settings, stream, "run")
    with database.control(settings) as connection:
        head = heads.head(connection, bronze_of(stream))
        ahead = replace(head, seq=head.seq + 1)
        heads.advance(connection, bronze_of(stream), ahead.version, ahead.seq, [])
    shop.view("e3", 3)
    shop.flush()
    with pytest.raises(LedgerBroken, match="newest commit is gone"):
        ingest(spark, settings, stream, "run")


def test_a_recreated_topic_stops_even_when_its_offsets_fit_and_goes_on_by_signature(
    spark, settings, stream, shop, rows
):
    shop.view("e1", 0)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    client = admin(settings)
    client.delete_topics([stream.topic])
    client.close()
    ensure_topics(settings, {stream.name: stream})
    shop.view("e2", 0)
    shop.view("e3", 0)
    shop.flush()
    with pytest.raises(TopicRecreated):
        ingest(spark, settings, stream, "run")
    accepted = accept_recreation(settings, stream, by="an operator", reason="the topic was created again")
    assert ([r.size for r in accepted.entry.lost if r.size], accepted.produced_again) == ([1], 1)
    assert ingest(spark, settings, stream, "run").rows == 2
    assert refine(spark, settings, stream, "run").counts["silver"] == 2
    assert sorted(row["event_id"] for row in rows(silver_of(stream))) == ["e1", "e2", "e3"]
    assert list(ledger.problems(reversed(list(ledger.entries(settings, bronze_of(stream)))))) == []


def test_partitions_added_midway_are_read_from_their_beginning_in_every_layer(
    spark, settings, stream, view, shop, rows
):
    shop.view("e1", 0)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    roll_up(spark, settings, view, "run")
    add_partitions(settings, stream, 5)
    later = Shop(settings, stream)
    for partition in (3, 4):
        event = {"event_id": f"p{partition}", "event_time": f"{START:%FT%TZ}", "user_id": "u", "page": "/"}
        later.raw(json.dumps(event).encode(), 1, partition=partition)
    later.flush()
    entry = ingest(spark, settings, stream, "run")
    assert [(r.start, r.end) for r in entry.ranges if r.partition > 2] == [(0, 1), (0, 1)]
    refine(spark, settings, stream, "run")
    roll_up(spark, settings, view, "run")
    assert offsets(rows(bronze_of(stream))) == sorted(shop.acknowledged + later.acknowledged)
    assert [row["views"] for row in rows(f"gold.{view.name}")] == [3]


def test_what_retention_took_stops_the_stream_until_somebody_signs_for_it(spark, settings, stream, shop, rows):
    for n in range(4):
        shop.view(f"e{n}", n)
    shop.flush()
    ingest(spark, settings, stream, "run")
    for n in range(4, 10):
        shop.view(f"e{n}", n)
    shop.flush()
    partition = shop.acknowledged[0][0]
    client = admin(settings)
    client.delete_records({TopicPartition(stream.topic, partition): 7})
    client.close()
    with pytest.raises(DataLoss, match=rf"{stream.topic}-{partition}: offsets \[4, 7\) are gone"):
        ingest(spark, settings, stream, "run")
    signed = accept_gap(settings, stream, by="an operator", reason="retention was too short")
    assert (signed.rows, signed.signed["reason"]) == (0, "retention was too short")
    assert ingest(spark, settings, stream, "run").rows == 3
    assert sorted(row["offset"] for row in rows(bronze_of(stream))) == [0, 1, 2, 3, 7, 8, 9]
    assert list(ledger.problems(reversed(list(ledger.entries(settings, bronze_of(stream)))))) == []
    assert accept_gap(settings, stream, by="an operator", reason="again") is None


def test_the_broker_refuses_a_producer_whose_clock_is_ahead(settings, stream):
    errors = []
    producer = Producer(confluent_config(settings) | {"log_level": 0})
    for ahead in (timedelta(minutes=4), timedelta(minutes=6)):
        at = int((datetime.now(UTC) + ahead).timestamp() * 1000)
        producer.produce(stream.topic, b"{}", timestamp=at, on_delivery=lambda error, _: errors.append(error))
        producer.flush(30)
    assert [error and error.code() for error in errors] == [None, KafkaError.INVALID_TIMESTAMP]
