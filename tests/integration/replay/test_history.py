"""A changed definition over 30 days of the real history: the diff names exactly the windows that change, and undo takes it back.

The oracle reads the file with the history itself, and adds up in plain Python.
"""

import json
import uuid
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from tests.support.digest import digest

from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Windowed
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.refine.silver import refine
from lockstep.replay import run
from lockstep.replay.parse import parse
from shop.simulate.retail import DATA

FIRST = datetime(2011, 3, 1, tzinfo=UTC)
LAST = FIRST + timedelta(days=30)
POSTAGE = "POST"


@pytest.fixture
def history():
    """The lines of 30 days, as the file has them."""
    table = pq.read_table(DATA, columns=["InvoiceNo", "StockCode", "Quantity", "InvoiceDate", "UnitPrice", "Country"])
    rows = (row | {"at": row["InvoiceDate"].replace(tzinfo=UTC)} for row in table.to_pylist())
    return [row for row in rows if FIRST <= row["at"] < LAST]


@pytest.fixture
def sales(settings):
    name = f"sales_{uuid.uuid4().hex[:8]}"
    contract = Contract(
        name=name,
        topic=name,
        kind="events",
        columns={
            "event_id": "STRING",
            "event_time": "TIMESTAMP",
            "product_id": "STRING",
            "country": "STRING",
            "amount": "DECIMAL(18,3)",
        },
        key=("country",),
        unique_id=("event_id",),
        event_time="event_time",
        required=("event_id", "event_time", "amount"),
    )
    view = Windowed(
        name=f"revenue_{name[-8:]}",
        input=name,
        by={"country": "country"},
        measures={"revenue": "CAST(sum(amount) AS DECIMAL(18,3))", "lines": "count(*)"},
        columns={
            "window_start": "TIMESTAMP",
            "window_end": "TIMESTAMP",
            "country": "STRING",
            "revenue": "DECIMAL(18,3)",
            "lines": "BIGINT",
        },
        key=("window_start", "country"),
        event_time="event_time",
        size=timedelta(hours=1),
        slide=timedelta(hours=1),
        allowed_lateness=timedelta(seconds=5),
    )
    ensure_topics(settings, {name: contract})
    CONTRACTS[name], VIEWS[view.name] = contract, view
    yield contract, view
    del CONTRACTS[name], VIEWS[view.name]


def send(settings, contract, history):
    producer = Producer(confluent_config(settings) | {"acks": "all", "linger.ms": 50, "log_level": 0})
    for n, row in enumerate(history):
        event = {
            "event_id": f"{row['InvoiceNo']}-{n}",
            "event_time": row["at"].isoformat(),
            "product_id": row["StockCode"],
            "country": row["Country"],
            "amount": str(amount(row)),
        }
        at = int(row["at"].timestamp() * 1000) + 500
        producer.produce(contract.topic, json.dumps(event).encode(), row["Country"].encode(), timestamp=at)
        producer.poll(0)
    assert producer.flush(60) == 0


def amount(row):
    return row["Quantity"] * Decimal(f"{row['UnitPrice']:.3f}")


def added_up(rows):
    """The oracle: revenue and lines by hour and country."""
    totals = defaultdict(lambda: (Decimal(0), 0))
    for row in rows:
        key = (row["at"].replace(minute=0, second=0), row["Country"])
        totals[key] = (totals[key][0] + amount(row), totals[key][1] + 1)
    return dict(totals)


def in_gold(spark, view):
    rows = spark.table(f"gold.{view.name}").collect()
    return {(r["window_start"].replace(tzinfo=UTC), r["country"]): (r["revenue"], r["lines"]) for r in rows}


@pytest.mark.slow
def test_the_diff_names_exactly_the_windows_that_change_and_undo_gives_back_the_old_digest(
    spark, settings, sales, history
):
    contract, view = sales
    send(settings, contract, history)
    ingest(spark, settings, contract, "run")
    refine(spark, settings, contract, "run")
    roll_up(spark, settings, view, "run")
    before = digest(settings, f"gold.{view.name}")
    old, new = added_up(history), added_up(row for row in history if row["StockCode"] != POSTAGE)
    assert in_gold(spark, view) == old

    VIEWS[view.name] = replace(view, where=f"product_id <> '{POSTAGE}'")
    request = parse(
        {"reason": "postage is no revenue", "from": FIRST, "to": LAST, "views": [view.name], "approve": "by_hand"}
    )
    name = run.identify(request)
    replay = run.open_replay(spark, settings, request, "tester", "run", name)
    assert sum(part.rows for part in replay.plan.parts) == len(history)
    run.compute(spark, settings, name, "run")
    run.compare(spark, settings, name, "run")
    windows = spark.table("ops.replay_windows").where(f"replay = '{name}'").collect()
    named = {r["window_start"].replace(tzinfo=UTC) for r in windows if r["verdict"] != "equal"}
    assert named == {hour for hour, country in old if old[hour, country] != new.get((hour, country))}
    assert {r["window_start"].replace(tzinfo=UTC) for r in windows} == {hour for hour, _ in old}
    assert sum(r["removed"] for r in windows) == len(old.keys() - new.keys())

    run.approve(spark, settings, name, "run", "tester")
    run.promote(spark, settings, name, "run")
    assert in_gold(spark, view) == new
    run.undo(spark, settings, name, "run", "tester")
    assert digest(settings, f"gold.{view.name}") == before
