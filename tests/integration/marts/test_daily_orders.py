"""The mart daily_orders, built by dbt from silver, day by day."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.support.marts import drop_marts

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.lake import Txn
from lockstep.marts.build import build
from lockstep.marts.dbt_project import MartsFailed
from lockstep.settings import Settings

DAY = datetime(2026, 11, 19, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)
AFTER = NEXT + timedelta(days=1)
# What the platform adds, as far as models and tests read it.
ADDED = {"_deleted": "BOOLEAN", "_generation": "INT", "_commit_lsn": "BIGINT"}
TABLES = {f"silver.{name}": {**CONTRACTS[name].columns, **ADDED} for name in ("orders", "order_lines")}


class Order(NamedTuple):
    """An order of one line."""

    order_id: str
    at: datetime
    country: str | None
    quantity: int
    price: str
    kind: str = "sale"
    deleted: bool = False
    lsn: int = 0
    lost: bool = False

    def rows(self) -> dict[str, tuple[Any, ...]]:
        """Its row in each table of silver. Of one that is lost, there is only the line."""
        found: dict[str, tuple[Any, ...]] = {
            "silver.orders": (self.order_id, "u1", self.country, self.kind, self.at, None, self.deleted, 1, self.lsn),
            "silver.order_lines": (
                *(self.order_id, 1, "p1", "thing", self.quantity, Decimal(self.price)),
                *(self.at, self.deleted, 1, self.lsn),
            ),
        }
        return {table: row for table, row in found.items() if not (self.lost and table == "silver.orders")}


Hold = Callable[..., None]
Mart = Callable[[], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def versions() -> Iterator[int]:
    return count(1)


@pytest.fixture(scope="module")
def holding(settings: Settings, versions: Iterator[int]) -> Iterator[Callable[..., None]]:
    """Make silver hold these orders and no others."""

    def hold(spark: Any, *orders: Order) -> None:
        for table, columns in TABLES.items():
            lake.create(spark, settings, table, columns)
            rows = [row for order in orders if (row := order.rows().get(table))]
            held = pa.Table.from_pylist(
                [dict(zip(columns, row, strict=True)) for row in rows], lake.schema(settings, table)
            )
            lake.replace(held, settings, table, "true", Txn("test", next(versions)), {"writer": "test"})

    yield hold
    for table in TABLES:
        shutil.rmtree(lake.path(settings, table), ignore_errors=True)


@pytest.fixture
def hold(spark: Any, settings: Settings, holding: Callable[..., None]) -> Iterator[Hold]:
    yield lambda *orders: holding(spark, *orders)
    for table in TABLES:
        spark.sql(f"DROP TABLE IF EXISTS {table}")
    drop_marts(spark, settings)


@pytest.fixture
def mart(spark: Any) -> Mart:
    """The mart's rows, sorted."""
    return lambda: sorted(tuple(row) for row in spark.table("marts.daily_orders").collect())


def row(day: datetime, country: str, orders: int, revenue: str, returns: str) -> tuple[Any, ...]:
    return (day.date(), country, orders, Decimal(revenue), Decimal(returns))


def test_a_day_has_a_row_per_country_and_is_the_same_when_it_is_built_again(
    spark: Any, settings: Settings, hold: Hold, mart: Mart
) -> None:
    hold(
        Order("1", DAY, "France", 2, "1.255"),
        Order("2", NEXT - timedelta(seconds=1), "France", 1, "0.001"),
        Order("C3", DAY, "France", -3, "2.500", kind="cancellation"),
        Order("4", DAY, None, 1, "4.000"),
        Order("A5", DAY, "Norway", 1, "-99.000", kind="adjustment"),
        Order("6", NEXT, "Norway", 1, "9.000"),
        Order("7", DAY, "Spain", 1, "9.000", deleted=True),
    )
    build(spark, settings, DAY, NEXT, "run-1")
    first = mart()
    assert first == [
        row(DAY, "France", 2, "2.511", "7.500"),
        row(DAY, "Unspecified", 1, "4.000", "0.000"),
        # A mart that does not exist yet is built for all days.
        row(NEXT, "Norway", 1, "9.000", "0.000"),
    ]
    build(spark, settings, DAY, NEXT, "run-2")
    assert mart() == first
    record = next(lake.commits(settings, "marts.daily_orders")).record
    assert (record["writer"], record["run_id"]) == ("dbt", "run-2")
    assert record["interval"] == ["2026-11-19", "2026-11-20"]
    assert record["sources"].keys() >= {"silver.orders", "silver.order_lines"}
    assert record["sources"]["silver.page_views"] is None, "it does not exist, and stops no mart of orders"


@pytest.mark.slow
def test_a_day_is_replaced_whole_and_the_others_stay(spark: Any, settings: Settings, hold: Hold, mart: Mart) -> None:
    france, norway = Order("1", DAY, "France", 1, "1.000"), Order("2", DAY, "Norway", 1, "2.000")
    spain = Order("3", NEXT, "Spain", 1, "3.000")
    hold(france, norway, spain)
    build(spark, settings, DAY, AFTER, "run-1")
    assert [found[1] for found in mart()] == ["France", "Norway", "Spain"]

    hold(france)
    build(spark, settings, DAY, NEXT, "run-2")
    assert [found[1] for found in mart()] == ["France", "Spain"]
    # A day that has no orders any more has no rows any more.
    build(spark, settings, NEXT, AFTER, "run-3")
    assert [found[1] for found in mart()] == ["France"]


def test_a_line_without_its_order_holds_the_marts_back_unless_the_order_may_be_on_its_way(
    spark: Any, settings: Settings, hold: Hold, mart: Mart
) -> None:
    first, last = Order("1", DAY, "France", 1, "1.000", lsn=1), Order("3", DAY, "France", 1, "1.000", lsn=3)
    lost = Order("2", DAY, "France", 1, "1.000", lsn=2, lost=True)
    hold(first, lost)
    build(spark, settings, DAY, NEXT, "run-1")
    assert mart() == [row(DAY, "France", 1, "1.000", "0.000")]
    hold(first, lost, last)
    with pytest.raises(MartsFailed, match="order_lines_have_their_order: Got 1 result"):
        build(spark, settings, DAY, NEXT, "run-2")
    assert mart() == [row(DAY, "France", 1, "1.000", "0.000")], "the last good version"
    hold(first, lost._replace(lost=False), last)
    build(spark, settings, DAY, NEXT, "run-3")
    assert mart() == [row(DAY, "France", 3, "3.000", "0.000")]


def test_a_mart_that_breaks_its_own_tests_is_named(spark: Any, settings: Settings, hold: Hold) -> None:
    hold(Order("C1", DAY, "France", 3, "1.000", kind="cancellation"))
    with pytest.raises(MartsFailed, match="holds_daily_orders"):
        build(spark, settings, DAY, NEXT, "run-1")
