"""A stream that nobody planned, with a schema and a key of its own, goes through all layers as it was made from the template."""

import importlib.util
import json
import shutil
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from confluent_kafka import Producer
from tests.shop.oracles.record import Record
from tests.support.paths import CHECKOUT

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.new import make
from lockstep.new.make import Stream
from lockstep.new.render import SOURCES
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine
from lockstep.serving.merged import publish
from lockstep.settings import Settings

AT = datetime(2026, 11, 10, 10, tzinfo=UTC)
COLUMNS = {"parcel": "STRING", "weighed_at": "TIMESTAMP", "scale_no": "BIGINT", "kilograms": "DECIMAL(9,3)"}


def load(root: Path, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, root / path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[ModuleType, ModuleType]]:
    """A view that was made over a stream that was made, and its oracle; nothing else of the project is touched."""
    name = f"parcels_{uuid.uuid4().hex[:8]}"
    copy = Settings(project=tmp_path, package="shop")
    (tmp_path / SOURCES).parent.mkdir(parents=True)
    shutil.copy(CHECKOUT / SOURCES, tmp_path / SOURCES)
    contract = load(tmp_path, make.stream(copy, Stream(name, "events", COLUMNS, "parcel", "scale_no", "weighed_at"))[0])
    CONTRACTS[name] = contract.CONTRACT
    paths = make.view(copy, f"{name}_per_minute", name)
    oracle = next(path for path in paths if "oracles" in path.parts)
    yield load(tmp_path, paths[0]), load(tmp_path, oracle)
    del CONTRACTS[name]


def play(settings, contract):
    """Four parcels: one weighed twice over, one late, one in another minute, and one that is no JSON."""
    sent: list[Record] = []
    producer = Producer(confluent_config(settings) | {"log_level": 0})
    for n, (parcel, scale, second, later) in enumerate(
        [("a", 1, 5, 1), ("a", 1, 5, 3), ("b", 2, 20, 30), ("c", 1, 70, 1)]
    ):
        happened = AT + timedelta(seconds=second)
        value = {"parcel": parcel, "weighed_at": happened.isoformat(), "scale_no": scale, "kilograms": "1.250"}
        arrival = happened + timedelta(seconds=later)
        sent.append(Record(contract.name, 0, n, arrival, value))
        _send(producer, contract.topic, json.dumps(value).encode(), arrival)
    _send(producer, contract.topic, b"{broken", AT)
    for partition in range(contract.partitions):
        _send(producer, contract.topic, None, AT + timedelta(hours=1), partition, [("lockstep-heartbeat", b"1")])
    assert producer.flush(30) == 0
    return sent


def _send(producer, topic, value, at, partition=0, headers=None):
    stamp = int(at.timestamp() * 1000)
    producer.produce(topic, value, partition=partition, timestamp=stamp, headers=headers or [])


def test_it_reaches_bronze_silver_gold_live_and_serving_and_both_layers_agree(spark, settings, own):
    module, oracle = own
    view, contract = module.VIEW, CONTRACTS[module.VIEW.input]
    ensure_topics(settings, {contract.name: contract})
    sent = play(settings, contract)
    assert ingest(spark, settings, contract, "run").counts == {"rows": 8}
    assert refine(spark, settings, contract, "run").counts == {
        "silver": 3,
        "duplicates": 1,
        "quarantined": 1,
        "markers": 3,
    }
    assert roll_up(spark, settings, view, "run").counts == {"counted": 2, "ignored": 1, "side_output": 0}
    with connect(settings, "live") as session:
        running = service.start(session, settings, replace(view))
        running.processAllAvailable()
        running.stop()
    report = reconcile(spark, settings, view, "run")
    assert (report.verdict, report.windows) == ("equal", 2)
    publish(spark, settings, [view])
    found = spark.table(f"serving.{view.name}").collect()
    expected = oracle.rows({contract.name: sent})
    assert {(r["window_start"].replace(tzinfo=UTC), r["scale_no"], r["events"]) for r in found} == {
        (row["window_start"], row["scale_no"], row["events"]) for row in expected
    }
    assert len(found) == len(expected) == 2
