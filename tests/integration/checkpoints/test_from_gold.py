"""A keyed view whose records are gone from the log goes on live from gold: with its rows, and with what its machines know."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kafka import TopicPartition
from tests.support.alone import Alone, alone
from tests.support.records import at
from tests.support.records import change_record as changed
from tests.support.records import event_record as happened

from lockstep.catalog import connect
from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.resets import GOLD, plan, reset
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.kafka_clients import admin
from lockstep.live import generations
from lockstep.reconcile.run import reconcile
from lockstep.service import members_of
from lockstep.service.job import JobHandle
from lockstep.settings import Settings


@contextmanager
def queried(one: Alone, spark: Any) -> Iterator[JobHandle]:
    """The live query of the view, as the service runs it."""
    handle = JobHandle(members_of(one.settings, [one.view]), spark)
    handle.supervise(one.settings, 0, 1)
    try:
        yield handle
    finally:
        handle.stop()


def retention_takes_all(one: Alone) -> None:
    bounds = offsets_of_topics(one.settings, [contract.topic for contract in one.own.values()])
    ends = {TopicPartition(t, p): end for t, b in bounds.items() for p, (_, end) in b.partitions.items()}
    with closing(admin(one.settings)) as client:
        client.delete_records(ends)


def goes_on(one: Alone, spark: Any) -> None:
    """The live query is behind, the log is gone, and a reset to gold lets it go on."""
    retention_takes_all(one)
    with queried(one, spark) as handle:
        assert handle.running is None
        assert f"checkpoints reset {one.view.name} --to gold" in str(handle.error)
    reset(one.settings, plan(spark, one.settings, one.view, GOLD), "retention was too short", "an operator")
    with queried(one, spark) as handle:
        assert handle.error is None
        handle.running.processAllAvailable()
    assert bag(one.live_rows(spark)) == bag(one.take())


def agree(one: Alone, spark: Any) -> None:
    """After a restart too, both layers have the same rows, and reconciliation says so."""
    with queried(one, spark) as handle:
        handle.running.processAllAvailable()
    assert bag(one.live_rows(spark)) == bag(one.take())
    assert reconcile(spark, one.settings, one.view, "run").verdict == "equal"


def bag(rows: list[Any]) -> list[str]:
    return sorted(map(str, rows))


def user(age: int, second: float) -> dict[str, Any]:
    times = {"created_at": at(0).isoformat(), "updated_at": at(second).isoformat()}
    return {"user_id": "123", "name": "Alice", "email": "a@example.com", "age": age} | times


def viewed(number: int, second: float) -> Any:
    return happened("page_views", number, second, user_id="123", page="/")


@pytest.mark.slow
def test_a_view_of_a_table_knows_the_rows_that_only_gold_has_read(settings: Settings) -> None:
    with alone(settings, "page_views_enriched") as one, connect(settings, "live") as spark:
        one.feed(changed("users", 1, 0, None, user(30, 0)), viewed(0, 5), passed=60)
        with queried(one, spark) as handle:
            handle.running.processAllAvailable()
        one.feed(changed("users", 2, 70, user(30, 0), user(31, 70)), viewed(1, 80), passed=600)
        one.take()
        goes_on(one, spark)
        late = changed("users", 3, 700, user(31, 70), user(32, 75))
        one.feed(viewed(2, 650), late, viewed(3, 720), passed=900)
        agree(one, spark)
        ages = {row["event_id"]: row["age"] for row in one.live_rows(spark)}
        assert ages == {"e0": 30, "e1": 32, "e2": 32, "e3": 32}, "e1 was corrected, which live had never read"


@pytest.mark.slow
def test_a_view_of_tables_alone_goes_on(settings: Settings) -> None:
    """Such a view has no event time, so gold's machines have processed events before no instant."""
    order = {"order_id": "1", "user_id": "123", "country": "France", "kind": "sale"}
    order |= {"ordered_at": at(10).isoformat(), "amount": "10.000"}
    with alone(settings, "orders_with_customer") as one, connect(settings, "live") as spark:
        one.feed(changed("users", 1, 0, None, user(30, 0)), passed=60)
        with queried(one, spark) as handle:
            handle.running.processAllAvailable()
        one.feed(changed("orders", 2, 10, None, order), passed=600)
        one.take()
        goes_on(one, spark)
        one.feed(changed("users", 3, 700, user(30, 0), user(31, 70)), passed=900)
        agree(one, spark)
        assert [row["order_id"] for row in one.live_rows(spark)] == ["1"]


def test_a_session_that_was_open_in_gold_goes_on(settings: Settings) -> None:
    with alone(settings, "user_sessions") as one, connect(settings, "live") as spark:
        one.feed(viewed(0, 0), passed=30)
        with queried(one, spark) as handle:
            handle.running.processAllAvailable()
        other = happened("page_views", 9, 110, user_id="9", page="/")
        one.feed(viewed(1, 100), other, passed=300)
        one.take()
        goes_on(one, spark)
        assert one.live_rows(spark) == []
        one.feed(viewed(2, 400), passed=2000)
        agree(one, spark)
        pages = {row["user_id"]: (row["session_start"], row["pages"]) for row in one.live_rows(spark)}
        assert {who: n for who, (_, n) in pages.items()} == {"123": 3, "9": 1}, "nobody called for 9 but the timer"


def test_events_that_gold_has_not_made_final_are_read_again_and_those_before_are_not(settings: Settings) -> None:
    with alone(settings, "user_sessions") as one, connect(settings, "live") as spark:
        one.feed(viewed(0, 0), viewed(1, 290), passed=300)
        assert one.take() == []
        other = replace(one.view, allowed_lateness=timedelta(seconds=20))
        with pytest.raises(ActionRefused, match="has no machines from which"):
            plan(spark, one.settings, other, GOLD)
        planned = plan(spark, one.settings, one.view, GOLD)
        reset(one.settings, planned, "live is to begin with gold", "an operator")
        assert generations.get(settings, one.view.name).seed.until == planned.seed.until
        one.feed(viewed(2, 310), passed=2000)
        agree(one, spark)
        assert [row["pages"] for row in one.live_rows(spark)] == [3], "each page once"


def test_a_view_of_which_gold_has_nothing_is_refused(settings: Settings, spark: Any) -> None:
    with alone(settings, "user_sessions") as one, pytest.raises(ActionRefused, match="has no machines from which"):
        plan(spark, one.settings, one.view, GOLD)
    with (
        alone(settings, "page_views_per_minute") as one,
        pytest.raises(ActionRefused, match="has no final window from which"),
    ):
        plan(spark, one.settings, one.view, GOLD)
