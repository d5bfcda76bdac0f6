"""A view over two changing tables is kept up by its changes: one costs what it changes, however much has been before."""

import json
import sys
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable
from pyspark import cloudpickle
from tests.support.records import at, change_record
from tests.support.tables import rows_of

from lockstep import lake
from lockstep.batch import going_on
from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.refine.silver import refine

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
OF_VIEW = VIEWS["orders_with_customer"]
CUSTOMERS, ORDERS_EACH = 30, 4
processed = []


def counted(state, event):
    """Process the event as the view does, and keep its stream."""
    processed.append(event.stream)
    return OF_VIEW.process(state, event)


def customer(number, age):
    times = dict.fromkeys(("created_at", "updated_at"), at(age).isoformat())
    return {"user_id": f"u{number}", "name": f"N{number}", "email": f"{number}@example.com", "age": age, **times}


def order(number, of, amount):
    row = {"order_id": str(number), "user_id": f"u{of}", "country": "France", "kind": "sale"}
    return row | {"ordered_at": at(number).isoformat(), "amount": f"{amount}.500"}


@pytest.fixture
def view(settings, monkeypatch):
    """The view over tables of the test's own, which counts what it processes."""
    suffix = uuid.uuid4().hex[:8]
    for name in OF_VIEW.streams:
        own = replace(CONTRACTS[name], name=f"{name}_{suffix}", topic=f"{name}_{suffix}", partitions=1)
        monkeypatch.setitem(CONTRACTS, name, own)
        ensure_topics(settings, {name: own})
    return replace(OF_VIEW, name=f"orders_with_customer_{suffix}", process=counted)


@pytest.fixture
def change(spark, settings, view):
    """Write rows into the tables and roll the view up; what it processed, and how many rows of gold it inserted and updated."""
    producer = Producer(confluent_config(settings) | {"acks": "all", "log_level": 0})
    lsn = iter(range(1, 1000))

    def written(**rows):
        for stream, row in ((stream, row) for stream, of_stream in rows.items() for row in of_stream):
            at_lsn = next(lsn)
            record = change_record(stream, at_lsn, at_lsn, None, row)
            producer.produce(CONTRACTS[stream].topic, json.dumps(record.value).encode(), b"k", partition=0)
        assert producer.flush(30) == 0
        for stream in view.streams:
            ingest(spark, settings, CONTRACTS[stream], "run")
            refine(spark, settings, CONTRACTS[stream], "run")
        processed.clear()
        roll_up(spark, settings, view, "run")
        metrics = DeltaTable(lake.path(settings, gold_of(view))).history(1)[0].get("operationMetrics", {})
        return processed[:], [metrics.get(f"num_target_rows_{done}") for done in ("inserted", "updated", "deleted")]

    return written


def test_a_change_processes_itself_and_writes_the_rows_that_it_changes(spark, settings, view, change, monkeypatch):
    change(
        users=[customer(number, age=40) for number in range(CUSTOMERS)],
        orders=[order(number, of=number % CUSTOMERS, amount=1) for number in range(CUSTOMERS * ORDERS_EACH)],
    )
    monkeypatch.setattr(going_on, "rows_and_machines", lambda *_: pytest.fail("history was read"))
    assert change(users=[customer(7, age=41)]) == (["users"], [0, ORDERS_EACH, 0])
    assert change(orders=[order(7, of=7, amount=2)]) == (["orders"], [0, 1, 0])
    assert change(orders=[order(999, of=7, amount=3)]) == (["orders"], [1, 0, 0])

    rows = rows_of(spark, settings, gold_of(view))
    assert len(rows) == CUSTOMERS * ORDERS_EACH + 1
    assert sorted(row["order_id"] for row in rows if row["age"] == 41) == sorted(["7", "37", "67", "97", "999"])
    assert {row["order_id"]: int(row["amount"]) for row in rows if row["amount"] > 2} == {"7": 2, "999": 3}
