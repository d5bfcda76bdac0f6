"""A view over tables: its layers are compared although their offsets differ, and readers see the newer row of each key."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.support.slow import slow

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.batch.saved_machines import SavedMachines
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.lake import newest_version
from lockstep.reconcile import attribute
from lockstep.reconcile.difference import Cause
from lockstep.reconcile.run import reconcile
from lockstep.refine.parse import GENERATION
from lockstep.refine.silver import refine
from lockstep.serving.merged import publish
from lockstep.settings import Settings

AT = datetime(2026, 11, 10, 10, tzinfo=UTC)


@dataclass
class Desk:
    """Customers and their orders, as Debezium publishes them, and both layers of the view over them."""

    spark: Any
    settings: Settings
    view: View
    lsn: int = 0
    generation: int = 1

    def customer(self, user_id: str, name: str) -> None:
        row = {"user_id": user_id, "name": name, "age": 30, "updated_at": AT.isoformat()}
        self._send("users", user_id, row)

    def order(self, order_id: str, user_id: str, amount: str, minute: int = 0) -> None:
        at = (AT + timedelta(minutes=minute)).isoformat()
        row = {"order_id": order_id, "user_id": user_id, "kind": "sale", "ordered_at": at, "amount": amount}
        self._send("orders", order_id, row)

    def broken_order(self) -> None:
        self._send("orders", "?", {})

    def truncate(self, *streams: str) -> None:
        for stream in streams:
            self._send(stream, None, None, op="t")

    def restore(self) -> None:
        """The database counts its LSNs from 0 again, in a new generation."""
        self.lsn, self.generation = 0, self.generation + 1
        self.truncate("users", "orders")

    def _send(self, stream: str, key: str | None, row: dict[str, Any] | None, op: str = "u") -> None:
        self.lsn += 1
        source = {"lsn": self.lsn, "ts_ms": int(AT.timestamp() * 1000), "sequence": f'["{self.lsn}","{self.lsn}"]'}
        envelope = {"before": None, "after": row, "op": op, "source": source}
        producer = Producer(confluent_config(self.settings) | {"log_level": 0})
        headers = [(GENERATION, str(self.generation).encode())]
        producer.produce(CONTRACTS[stream].topic, json.dumps(envelope).encode(), key and key.encode(), headers=headers)
        assert producer.flush(30) == 0

    def batch(self) -> None:
        for stream in ("users", "orders"):
            ingest(self.spark, self.settings, CONTRACTS[stream], "run")
            refine(self.spark, self.settings, CONTRACTS[stream], "run")
        roll_up(self.spark, self.settings, self.view, "run")

    def live(self) -> None:
        with connect(self.settings, "live") as own:
            running = service.start(own, self.settings, self.view)
            running.processAllAvailable()
            running.stop()

    def two_orders_in_both_layers(self) -> None:
        self.customer("u1", "Alice")
        self.order("1", "u1", "100.000")
        self.order("2", "u1", "200.000")
        self.batch()
        self.live()

    def orders_in_both_layers(self) -> dict[str, str]:
        """The amounts of the orders that exist, when the deletes that silver writes have come too."""
        self.batch()
        self.batch()
        self.live()
        assert self.verdict() == ("equal", set())
        gold, live = (self.spark.table(f"{layer}.{self.view.name}").where("NOT deleted") for layer in ("gold", "live"))
        amounts = {row["order_id"]: str(row["amount"]) for row in gold.collect()}
        assert amounts == {row["order_id"]: str(row["amount"]) for row in live.collect()}
        return amounts

    def verdict(self) -> tuple[str, set[str]]:
        report = reconcile(self.spark, self.settings, self.view, "run")
        return report.verdict, set(report.causes)

    def compared(self) -> tuple[str, int]:
        """The verdict, and how many keys were compared."""
        run_id = uuid.uuid4().hex
        verdict = reconcile(self.spark, self.settings, self.view, run_id).verdict
        windows = self.spark.table("ops.reconciliation").where(f"run_id = '{run_id}'").collect()
        return verdict, sum(window["keys"] for window in windows)

    def amounts(self) -> dict[str, tuple[str, str]]:
        publish(self.spark, self.settings, [self.view])
        rows = self.spark.table(f"serving.{self.view.name}").collect()
        assert len(rows) == len({row["order_id"] for row in rows})
        assert not any(row["_final"] for row in rows), "a table can always change, so no row is final"
        return {row["order_id"]: (str(row["amount"]), row["_layer"]) for row in rows}


@contextmanager
def opened(spark: Any, settings: Settings) -> Iterator[Desk]:
    """A desk with streams and a view of its own."""
    suffix, before = uuid.uuid4().hex[:8], {name: CONTRACTS[name] for name in ("users", "orders")}
    own = {n: replace(c, name=f"{n}_{suffix}", topic=f"{c.topic}_{suffix}") for n, c in before.items()}
    CONTRACTS.update(own)
    ensure_topics(settings, own)
    yield Desk(spark, settings, replace(VIEWS["orders_with_customer"], name=f"desk_{suffix}"))
    CONTRACTS.update(before)


@pytest.fixture
def desk(spark: Any, settings: Settings) -> Iterator[Desk]:
    with opened(spark, settings) as own:
        yield own


@pytest.fixture(scope="module")
def ahead(settings: Settings) -> Iterator[Desk]:
    """A desk where gold has a newer row of order 1 than live."""
    with connect(settings, "test") as spark, opened(spark, settings) as own:
        own.two_orders_in_both_layers()
        own.order("1", "u1", "101.000")
        own.batch()
        yield own


def test_the_layers_are_compared_at_one_position_and_readers_see_the_newer_row(desk):
    desk.two_orders_in_both_layers()
    assert desk.verdict() == ("equal", set())
    assert desk.amounts() == {"1": ("100.000", "batch"), "2": ("200.000", "batch")}

    desk.order("1", "u1", "101.000")
    desk.live()
    assert desk.verdict() == ("equal", set()), "live is ahead: its older version is compared"
    assert desk.amounts() == {"1": ("101.000", "live"), "2": ("200.000", "batch")}

    desk.order("3", "u1", "300.000")
    desk.batch()
    assert desk.verdict() == ("explained", {Cause.NOT_YET_SEEN}), "batch is ahead"
    assert desk.amounts() == {"1": ("101.000", "batch"), "2": ("200.000", "batch"), "3": ("300.000", "batch")}

    desk.live()
    assert desk.verdict() == ("equal", set())
    desk.spark.sql(f"UPDATE live.{desk.view.name} SET amount = 999 WHERE order_id = '2'")
    assert desk.verdict() == ("unexplained", set())


def test_of_a_long_history_what_may_have_changed_is_compared_and_an_old_row_that_somebody_changes(desk):
    desk.view = replace(desk.view, key=("ordered_at", *desk.view.key))
    desk.customer("u1", "Alice")
    for number in range(5):
        desk.order(str(number), "u1", "100.000", minute=number)
    desk.batch()
    desk.live()
    assert desk.compared() == ("equal", 5)
    desk.order("5", "u1", "100.000", minute=5)
    desk.batch()
    assert desk.compared() == ("explained", 1), "batch is ahead"
    assert desk.compared() == ("explained", 1), "the row that differs is compared again, although nothing is new"
    desk.live()
    assert desk.compared() == ("equal", 1)

    table = f"live.{desk.view.name}"
    good = newest_version(desk.settings, table)
    desk.spark.sql(f"UPDATE {table} SET amount = 999 WHERE order_id = '0'")
    assert desk.compared() == ("unexplained", 6)
    desk.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {good}")
    assert desk.compared() == ("equal", 6)


@pytest.mark.slow
def test_a_view_that_has_no_rows_yet_is_compared_too(desk):
    desk.customer("u1", "Alice")
    desk.broken_order()
    desk.batch()
    desk.live()
    report = reconcile(desk.spark, desk.settings, desk.view, "run")
    assert report.verdict == "equal"
    assert report.until is not None, "it was compared"
    desk.order("1", "u1", "100.000")
    desk.batch()
    assert desk.verdict() == ("explained", {Cause.NOT_YET_SEEN}), "batch has the first row"
    desk.live()
    assert desk.verdict() == ("equal", set())


def test_which_layer_is_ahead_is_known_from_saved_machines_and_without_them(desk, monkeypatch):
    desk.two_orders_in_both_layers()
    desk.order("1", "u1", "101.000")
    desk.batch()
    desk.order("2", "u1", "201.000")
    desk.live()
    desk.order("1", "u1", "102.000")
    desk.customer("u1", "Alicia")
    desk.batch()

    with monkeypatch.context() as patch:
        patch.setattr(attribute, "_with_causes", lambda *_: pytest.fail("history was read"))
        assert desk.verdict() == ("explained", {Cause.NOT_YET_SEEN})
    files = SavedMachines(desk.settings, desk.view.name)
    assert len(files.names()) == 3
    files.remove_all_but([])
    assert desk.verdict() == ("explained", {Cause.NOT_YET_SEEN})


@pytest.mark.slow
def test_a_truncate_and_a_restored_database_delete_the_rows_of_both_layers(desk):
    desk.two_orders_in_both_layers()
    desk.truncate("orders")
    desk.order("3", "u1", "300.000")
    desk.order("4", "u1", "400.000")
    assert desk.orders_in_both_layers() == {"3": "300.000", "4": "400.000"}
    desk.restore()
    desk.customer("u1", "Alice")
    desk.order("3", "u1", "303.000")
    assert desk.orders_in_both_layers() == {"3": "303.000"}


FAULTS = {
    "changed": "UPDATE {table} SET amount = 999 WHERE order_id = '1'",
    "dropped": "DELETE FROM {table} WHERE order_id = '1'",
    "doubled": "INSERT INTO {table} SELECT * FROM {table} WHERE order_id = '1'",
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("layer", [slow("live"), "gold"])
def test_a_row_that_is_wrong_at_its_own_position_is_no_matter_of_positions(ahead, layer, fault):
    table = f"{layer}.{ahead.view.name}"
    good = newest_version(ahead.settings, table)
    ahead.spark.sql(FAULTS[fault].format(table=table))
    assert ahead.verdict() == ("unexplained", {Cause.NOT_YET_SEEN} if layer == "gold" else set())
    ahead.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {good}")
    assert ahead.verdict() == ("explained", {Cause.NOT_YET_SEEN})
