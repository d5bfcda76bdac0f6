"""Lag per partition, batch and live, as `lockstep ledger lag` prints it for a running broker."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

from confluent_kafka import Producer
from tests.support.committed import until_no_transaction_is_open
from typer.testing import CliRunner

from lockstep import service
from lockstep.catalog import connect
from lockstep.cli.main import app
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config


def lags(stream):
    result = CliRunner().invoke(app, ["ledger", "lag", stream.name, "--json"])
    assert result.exit_code == 0, result.output
    return {p["partition"]: p for p in json.loads(result.stdout)[stream.name]}


def test_each_partition_has_the_lag_of_batch_and_live(spark, settings, stream, view, shop, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_VIEWS", view.name)
    for n in range(30):
        shop.view(f"e{n}", n, user_id=f"u{n}")
    shop.flush()
    sent = Counter(partition for partition, _ in shop.acknowledged)
    live = f"live.{view.name}"
    before = lags(stream)
    assert {n: (p["end"], p["lag"]["bronze"], p["lag"][live]) for n, p in before.items()} == {
        p: (sent[p], sent[p], sent[p]) for p in range(stream.partitions)
    }
    ingest(spark, settings.model_copy(update={"max_offsets_per_run": 12}), stream, "run")
    halfway = lags(stream)
    assert sum(p["lag"]["bronze"] for p in halfway.values()) == 18
    assert all(p["position"]["bronze"] + p["lag"]["bronze"] == p["end"] for p in halfway.values())
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    after = lags(stream)
    assert {p["lag"][live] for p in after.values()} == {0}
    assert [p["lag"]["bronze"] for p in after.values()] == [p["lag"]["bronze"] for p in halfway.values()]


def test_records_behind_a_transaction_that_does_not_end_are_seen_as_lag(spark, settings, stream, shop):
    shop.raw(b"{}", 0, partition=0)
    shop.flush()
    producer = Producer(confluent_config(settings) | {"transactional.id": stream.name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(stream.topic, b"{}", partition=0)
    producer.flush(30)
    shop.raw(b"{}", 1, partition=0)
    shop.flush()
    assert ingest(spark, settings, stream, "run").rows == 1
    assert ingest(spark, settings, stream, "run") is None
    open_ = lags(stream)[0]
    assert (open_["position"]["bronze"], open_["end"], open_["waiting"], open_["lag"]["bronze"]) == (1, 5, 4, 4)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(open_["written_at"])) < timedelta(minutes=10)
    producer.abort_transaction(30)
    until_no_transaction_is_open(settings, stream.topic)
    assert ingest(spark, settings, stream, "run").rows == 1
    ended = lags(stream)[0]
    assert (ended["waiting"], ended["lag"]["bronze"], ended["written_at"]) == (0, 0, None)
