"""The mart daily_orders, built by dbt from silver, day by day."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.lake import Txn
from lockstep.marts import MartsFailed, build, unit_tests
from lockstep.settings import Settings

DAY = datetime(2026, 11, 19, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)
Order = Callable[..., None]


@pytest.fixture
def order(spark: Any, settings: Settings) -> Iterator[Order]:
    """Put an order of one line into silver, or take it out again."""
    tables = {f"silver.{name}": CONTRACTS[name].schema for name in ("orders", "order_lines")}
    for table, schema in tables.items():
        lake.create(spark, settings, table, f"{schema}, _deleted BOOLEAN")
        spark.sql(f"DELETE FROM {table}")

    def put(order_id: str, at: datetime, country: str | None, quantity: int, price: str, **more: Any) -> None:
        kind, deleted = more.get("kind", "sale"), more.get("deleted", False)
        rows = {
            "silver.orders": (order_id, "u1", country, kind, at, deleted),
            "silver.order_lines": (order_id, 1, "p1", "a thing", quantity, Decimal(price), deleted),
        }
        for table, row in rows.items():
            spark.sql(f"DELETE FROM {table} WHERE order_id = :id", {"id": order_id})
            frame = spark.createDataFrame([row], f"{tables[table]}, _deleted BOOLEAN")
            lake.append(frame, settings, table, Txn(f"{table}:{order_id}:{deleted}", 1), {"writer": "test"})

    yield put
    for table in tables:
        spark.sql(f"DROP TABLE {table}")
        spark.sql(f"DELETE FROM delta.`{lake.path(settings, table)}`")


@pytest.fixture
def mart(spark: Any) -> Callable[[], list[tuple[Any, ...]]]:
    """The mart's rows, sorted."""
    return lambda: sorted(tuple(row) for row in spark.table("marts.daily_orders").collect())


def row(day: datetime, country: str, orders: int, revenue: str, returns: str) -> tuple[Any, ...]:
    return (day.date(), country, orders, Decimal(revenue), Decimal(returns))


def test_a_day_has_a_row_per_country(spark: Any, settings: Settings, order: Order, mart: Any) -> None:
    order("1", DAY, "France", 2, "1.255")
    order("2", NEXT - timedelta(seconds=1), "France", 1, "0.001")
    order("C3", DAY, "France", -3, "2.500", kind="cancellation")
    order("4", DAY, None, 1, "4.000")
    order("A5", DAY, "Norway", 1, "-99.000", kind="adjustment")
    order("6", NEXT, "Norway", 1, "9.000")
    build(spark, settings, DAY, NEXT, "run-1")
    assert mart() == [row(DAY, "France", 2, "2.511", "7.500"), row(DAY, "Unspecified", 1, "4.000", "0.000")]


def test_a_day_that_is_built_again_is_the_same(spark: Any, settings: Settings, order: Order, mart: Any) -> None:
    order("1", DAY, "France", 2, "1.255")
    build(spark, settings, DAY, NEXT, "run-1")
    first = mart()
    build(spark, settings, DAY, NEXT, "run-2")
    assert mart() == first == [row(DAY, "France", 1, "2.510", "0.000")]


def test_a_day_is_replaced_whole_and_the_others_stay(spark: Any, settings: Settings, order: Order, mart: Any) -> None:
    order("1", DAY, "France", 1, "1.000")
    order("2", DAY, "Norway", 1, "2.000")
    order("3", NEXT, "Spain", 1, "3.000")
    build(spark, settings, DAY, NEXT + timedelta(days=1), "run-1")
    assert [found[1] for found in mart()] == ["France", "Norway", "Spain"]

    order("2", DAY, "Norway", 1, "2.000", deleted=True)
    order("3", NEXT, "Spain", 1, "3.000", deleted=True)
    build(spark, settings, DAY, NEXT, "run-2")
    assert [found[1] for found in mart()] == ["France", "Spain"]
    # A day that has no orders any more has no rows any more.
    build(spark, settings, NEXT, NEXT + timedelta(days=1), "run-3")
    assert [found[1] for found in mart()] == ["France"]


def test_a_commit_says_which_run_built_which_days_from_what(spark: Any, settings: Settings, order: Order) -> None:
    order("1", DAY, "France", 1, "1.000")
    build(spark, settings, DAY, NEXT, "run-9")
    record = next(lake.commits(settings, "marts.daily_orders")).record
    assert (record["writer"], record["run_id"]) == ("dbt", "run-9")
    assert record["interval"] == ["2026-11-19", "2026-11-20"]
    assert record["sources"].keys() == {"silver.orders", "silver.order_lines"}


def test_a_mart_that_breaks_its_own_tests_is_named(spark: Any, settings: Settings, order: Order) -> None:
    order("C1", DAY, "France", 3, "1.000", kind="cancellation")
    with pytest.raises(MartsFailed, match="holds_daily_orders"):
        build(spark, settings, DAY, NEXT, "run-1")
    order("C1", DAY, "France", 3, "1.000", kind="cancellation", deleted=True)
    build(spark, settings, DAY, NEXT, "run-2")


def test_dbts_own_unit_tests_pass(spark: Any, settings: Settings, order: Order) -> None:
    assert {name.partition("_")[0] for name in unit_tests(spark, settings)} == {"stg", "int", "daily"}
