"""Each mart says what plain Python finds in the same rows, to the penny; also after days were built again."""

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from tests.support.marts import drop_marts

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.lake import Txn
from lockstep.marts.build import build, unit_tests
from lockstep.marts.progress import Box, Kind
from lockstep.reconcile import record
from lockstep.settings import Settings

FIRST, LAST = datetime(2026, 10, 25, tzinfo=UTC), datetime(2026, 11, 5, tzinfo=UTC)
CHANGED = datetime(2026, 11, 2, tzinfo=UTC)
DAY = timedelta(days=1)
# What the platform adds to a captured table, as far as models read it.
ADDED = {
    "_op": "STRING",
    "_commit_lsn": "BIGINT",
    "_generation": "INT",
    "_committed_at": "TIMESTAMP",
    "_deleted": "BOOLEAN",
}
CAPTURED = ("orders", "order_lines", "products")
LOGS = ("inventory", "order_lines", "orders", "products", "users")
COLUMNS = (
    {f"silver.{name}": {**CONTRACTS[name].columns, **ADDED} for name in CAPTURED}
    | {f"silver.{name}_changes": {**CONTRACTS[name].columns, **ADDED} for name in LOGS}
    | {f"silver.{name}": dict(CONTRACTS[name].columns) for name in ("page_views", "payments")}
    | {
        f"gold.{name}": dict(VIEWS[name].output_columns)
        for name in ("ad_click_through", "fraud_alerts", "product_stock")
    }
)
Row = dict[str, Any]
Rows = dict[str, list[Row]]
_versions = count(1)


def made(seed: int) -> Rows:
    """Rows of each table, by chance."""
    dice = random.Random(seed)

    def moment() -> datetime:
        # Many at the ends of days.
        at = FIRST + timedelta(seconds=dice.randrange(int((LAST - FIRST).total_seconds())))
        return at.replace(hour=0, minute=0, second=0) if dice.random() < 0.1 else at

    rows: Rows = defaultdict(list)
    for number in range(300):
        kind = dice.choices(("sale", "cancellation", "adjustment"), (80, 15, 5))[0]
        at, user = moment(), dice.choice((None, *(f"u{n}" for n in range(25))))
        order = {"order_id": f"{kind[0]}{number}", "user_id": user, "country": dice.choice((None, "France", "Norway"))}
        deleted = dice.random() < 0.05
        rows["silver.orders"].append(order | {"kind": kind, "ordered_at": at, "_deleted": deleted})
        for line in range(dice.randrange(4)):
            price, sign = Decimal(dice.randrange(1, 99_999)).scaleb(-3), -1 if kind == "cancellation" else 1
            rows["silver.order_lines"].append(
                {
                    "order_id": order["order_id"],
                    "line_no": line,
                    "product_id": f"p{dice.randrange(9)}",
                    "ordered_at": at,
                }
                | {"quantity": sign * dice.randrange(1, 9), "unit_price": price, "_deleted": dice.random() < 0.05}
            )
    for number in range(400):
        visit, at = f"s{number // 4}", moment()
        page = dice.choice(("/", "/search", "/product/1", "/product/2", "/cart", "/checkout"))
        device = ("mobile", "desktop", "tablet")[number // 4 % 3]
        rows["silver.page_views"].append(
            {"event_id": f"v{number}", "event_time": at, "session_id": visit, "page": page, "device": device}
        )
        if number % 5 == 0:
            paid = {"event_id": f"y{number}", "event_time": at, "session_id": visit, "order_id": f"s{number}"}
            money = {"amount": Decimal(dice.randrange(1, 9_999)).scaleb(-3), "country": dice.choice((None, "France"))}
            rows["silver.payments"].append(paid | money)
            if number % 10 == 0:
                seen = {"payment_id": paid["event_id"], "payment_country": money["country"], "amount": money["amount"]}
                rows["gold.fraud_alerts"].append(seen | {"at": at + timedelta(minutes=3)})
        clicks = dice.choice((0, 0, 1, 2))
        for click in range(1, clicks + 1) if clicks else (0,):
            rows["gold.ad_click_through"].append(
                {"impression_id": f"i{number}", "ad_id": f"ad-{dice.randrange(2) if not clicks else number % 2}"}
                | {"click_no": click, "delay_ms": dice.randrange(600_000) if click else None, "at": moment()}
            )
    for number in range(9):
        counted, sold = (None, 5) if number == 8 else (dice.randrange(100), dice.randrange(-5, 120))
        stock = None if counted is None else counted - sold
        rows["gold.product_stock"].append(
            {
                "product_id": f"p{number}",
                "counted": counted,
                "counted_at": FIRST,
                "sold": sold,
                "stock": stock,
                "at": LAST,
            }
        )
        known = {
            "product_id": f"p{number}",
            "description": f"thing {number}",
            "price": Decimal(number * 1_255).scaleb(-3),
        }
        rows["silver.products"].append(known | {"_deleted": number == 7})
    for table in LOGS:
        keys = [*CONTRACTS[table].unique_id]
        for number in range(40):
            change: Row = {key: number % 7 if key == "line_no" else str(number % 7) for key in keys}
            rows[f"silver.{table}_changes"].append(change | {"_op": dice.choice("cudr"), "_committed_at": moment()})
    return rows


def day_of(at: datetime) -> date:
    return at.astimezone(UTC).date()


def amounts(rows: Rows) -> list[Row]:
    """Orders that are there, with what their lines come to."""
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for line in rows["silver.order_lines"]:
        if not line["_deleted"]:
            sums[line["order_id"]] += line["quantity"] * line["unit_price"]
    there = (order for order in rows["silver.orders"] if not order["_deleted"] and order["kind"] != "adjustment")
    return [order | {"amount": sums[order["order_id"]], "day": day_of(order["ordered_at"])} for order in there]


def money(orders: list[Row]) -> tuple[int, Decimal, Decimal]:
    """How many sales, what they came to, and what was returned."""
    sales = [order["amount"] for order in orders if order["kind"] == "sale"]
    returned = [order["amount"] for order in orders if order["kind"] == "cancellation"]
    return len(sales), sum(sales, Decimal(0)), -sum(returned, Decimal(0))


def grouped(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return found


def daily_orders(rows: Rows) -> set[tuple[Any, ...]]:
    named = [order | {"country": order["country"] or "Unspecified"} for order in amounts(rows)]
    return {(*key, *money(of)) for key, of in grouped(named, "day", "country").items()}


def daily_customers(rows: Rows) -> set[tuple[Any, ...]]:
    known = [order for order in amounts(rows) if order["user_id"]]
    return {(*key, *money(of)) for key, of in grouped(known, "day", "user_id").items()}


def _first_orders(rows: Rows) -> dict[str, list[date]]:
    sold = grouped([o for o in amounts(rows) if o["user_id"] and o["kind"] == "sale"], "user_id")
    return {user: sorted(order["day"] for order in of) for (user,), of in sold.items()}


def customer_lifetime_value(rows: Rows) -> set[tuple[Any, ...]]:
    days = _first_orders(rows)
    found = set()
    for (user,), of in grouped([order for order in amounts(rows) if order["user_id"]], "user_id").items():
        orders, revenue, returns = money(of)
        first, last = (days[user][0], days[user][-1]) if user in days else (None, None)
        found.add((user, first, last, orders, revenue, returns, revenue - returns))
    return found


def customer_cohorts(rows: Rows) -> set[tuple[Any, ...]]:
    first = {user: days[0].replace(day=1) for user, days in _first_orders(rows).items()}
    counted = []
    for order in amounts(rows):
        if (cohort := first.get(order["user_id"])) and (month := order["day"].replace(day=1)) >= cohort:
            number = (month.year - cohort.year) * 12 + month.month - cohort.month
            counted.append(order | {"cohort": cohort, "month_no": number})
    return {
        (*key, len({order["user_id"] for order in of if order["kind"] == "sale"}), *money(of))
        for key, of in grouped(counted, "cohort", "month_no").items()
    }


def daily_funnel(rows: Rows) -> set[tuple[Any, ...]]:
    paid = {(row["session_id"], day_of(row["event_time"])) for row in rows["silver.payments"]}
    visits: dict[tuple[date, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for view in rows["silver.page_views"]:
        visits[day_of(view["event_time"]), view["device"]][view["session_id"]].add("/" + view["page"].split("/")[1])
    steps = ("/search", "/product", "/cart", "/checkout")
    return {
        (
            *(day, device, len(of)),
            *(sum(step in pages for pages in of.values()) for step in steps),
            sum((visit, day) in paid for visit in of),
        )
        for (day, device), of in visits.items()
    }


def daily_ad_performance(rows: Rows) -> set[tuple[Any, ...]]:
    found = set()
    known = [row | {"day": day_of(row["at"])} for row in rows["gold.ad_click_through"]]
    for key, of in grouped(known, "day", "ad_id").items():
        numbers = [row["click_no"] for row in of]
        shown, clicked = sum(n <= 1 for n in numbers), numbers.count(1)
        ctr = (Decimal(clicked) / shown).quantize(Decimal("0.000001")) if shown else None
        delays = [row["delay_ms"] for row in of if row["click_no"] == 1]
        found.add(
            (
                *key,
                shown,
                clicked,
                sum(n >= 1 for n in numbers),
                ctr,
                int(sum(delays) / len(delays)) if delays else None,
            )
        )
    return found


def daily_fraud(rows: Rows) -> set[tuple[Any, ...]]:
    events = [(day_of(row["event_time"]), row["country"], row["amount"], 0) for row in rows["silver.payments"]]
    events += [(day_of(row["at"]), row["payment_country"], row["amount"], 1) for row in rows["gold.fraud_alerts"]]
    sums: dict[tuple[date, str], list[Any]] = defaultdict(lambda: [0, Decimal(0), 0, Decimal(0)])
    for day, country, amount, is_alert in events:
        of = sums[day, country or "Unspecified"]
        of[2 * is_alert] += 1
        of[2 * is_alert + 1] += amount
    return {(*key, *of) for key, of in sums.items()}


def stock(rows: Rows) -> set[tuple[Any, ...]]:
    products = {row["product_id"]: row for row in rows["silver.products"] if not row["_deleted"]}
    found = set()
    for row in (row for row in rows["gold.product_stock"] if row["counted"] is not None):
        product = products.get(row["product_id"], {})
        price = product.get("price")
        value = max(row["stock"], 0) * price if price is not None else None
        about = (row["product_id"], product.get("description"), price)
        found.add((*about, row["counted"], row["sold"], row["stock"], row["stock"] <= 0, value))
    return found


def audit_changes(rows: Rows) -> set[tuple[Any, ...]]:
    words = {"c": "created", "u": "updated", "d": "deleted", "r": "snapshot"}
    changes = []
    for table in LOGS:
        for row in rows[f"silver.{table}_changes"]:
            key = tuple(row[column] for column in CONTRACTS[table].unique_id)
            changes.append({"day": day_of(row["_committed_at"]), "table": table, "op": words[row["_op"]], "key": key})
    return {
        (*key, len(of), len({change["key"] for change in of}))
        for key, of in grouped(changes, "day", "table", "op").items()
    }


ORACLES = {
    oracle.__name__: oracle
    for oracle in (
        *(daily_orders, daily_customers, customer_lifetime_value, customer_cohorts, daily_funnel),
        *(daily_ad_performance, daily_fraud, stock, audit_changes),
    )
}
# What the oracles do not say.
WITHOUT = {"stock": {"counted_at"}, "audit_changes": {"last_committed_at"}}


def mart(spark: Any, name: str) -> list[tuple[Any, ...]]:
    found = spark.table(f"marts.{name}").collect()
    return [
        tuple(value for column, value in row.asDict().items() if column not in WITHOUT.get(name, ())) for row in found
    ]


@pytest.fixture(scope="module")
def lake_of_a_test(settings: Settings) -> Iterator[None]:
    from lockstep.catalog import connect

    with connect(settings, "test") as spark:
        drop_marts(spark, settings)
        yield
        drop_marts(spark, settings)
        for table in COLUMNS:
            lake.drop(spark, settings, table)


def hold(spark: Any, settings: Settings, rows: Rows) -> None:
    """Make the tables have these rows and no others."""
    for table, columns in COLUMNS.items():
        lake.create(spark, settings, table, columns)
        _replace(settings, table, [{name: row.get(name) for name in columns} for row in rows[table]])


def _replace(settings: Settings, table: str, rows: list[Row]) -> None:
    held = pa.Table.from_pylist(rows, lake.schema(settings, table))
    lake.replace(held, settings, table, "true", Txn("test_marts", next(_versions)), {"writer": "test"})


def test_each_mart_says_what_plain_python_finds(spark: Any, settings: Settings, lake_of_a_test: None) -> None:
    rows = made(1)
    hold(spark, settings, rows)
    # No mart is there yet, so that all days are built.
    build(spark, settings, CHANGED, CHANGED + DAY, "run-1")
    differing = {
        name for name, oracle in ORACLES.items() if (found := mart(spark, name)) and set(found) != oracle(rows)
    }
    assert differing == set()
    assert all(len(mart(spark, name)) == len(oracle(rows)) > 0 for name, oracle in ORACLES.items())

    # Other rows, of which only one day is built.
    new = made(2)
    hold(spark, settings, new)
    build(spark, settings, CHANGED, CHANGED + DAY, "run-2")
    for name in ("daily_orders", "daily_customers", "daily_funnel", "daily_ad_performance", "daily_fraud"):
        before = {row for row in ORACLES[name](rows) if row[0] != CHANGED.date()}
        assert set(mart(spark, name)) == before | {row for row in ORACLES[name](new) if row[0] == CHANGED.date()}, name

    build(spark, settings, FIRST, LAST + DAY, "run-3")
    assert {name for name, oracle in ORACLES.items() if set(mart(spark, name)) != oracle(new)} == set()


# By view: the mart that is made from it, and the test that compares it with live.
OF_LIVE = {
    "fraud_alerts": ("daily_fraud", "alerts_are_those_of_live"),
    "ad_click_through": ("daily_ad_performance", "ad_performance_is_that_of_live"),
}


def test_rows_that_live_does_not_have_are_warned_of_once_both_layers_were_compared(
    spark: Any, settings: Settings, lake_of_a_test: None
) -> None:
    rows = made(1)
    hold(spark, settings, rows)

    def live_lacks(number: int) -> None:
        for view in OF_LIVE:
            columns = {**VIEWS[view].output_columns, "_updated_at": "TIMESTAMP"}
            of_live = rows[f"gold.{view}"][number:]
            values = [{name: row.get(name) for name in columns} | {"_updated_at": LAST} for row in of_live]
            lake.create(spark, settings, f"live.{view}", columns)
            _replace(settings, f"live.{view}", values)

    def compared(until: datetime) -> None:
        for view in OF_LIVE:
            row = dict.fromkeys(record.COLUMNS) | {"view": view, "window_end": until}
            with record.TABLE.writing(spark, settings, "test") as commit:
                commit.append([tuple(row.values())], {}, key=f"test {view} {until}")

    def warned() -> set[str]:
        found = set()
        for name, _ in OF_LIVE.values():
            found |= {*build(spark, settings, FIRST, LAST + DAY, "run-4", only=Box(name, Kind.RUN)).warned}
        return found

    try:
        live_lacks(1)
        compared(FIRST)
        assert warned() == set(), "live may be behind"
        compared(LAST + DAY)
        assert warned() == {test for _, test in OF_LIVE.values()}
        live_lacks(0)
        assert warned() == set()
    finally:
        for view in OF_LIVE:
            lake.drop(spark, settings, f"live.{view}")


def test_dbts_own_unit_tests_pass(spark: Any, settings: Settings, lake_of_a_test: None) -> None:
    hold(spark, settings, made(1))
    assert {*unit_tests(spark, settings)} >= {"stock_is_valued_at_the_price_of_now", "daily_funnel_counts_visits_once"}
