"""Views that join tables and streams, through Kafka and Spark: in both layers, later changes correct earlier rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.support.alone import alone
from tests.support.records import at
from tests.support.records import change_record as changed
from tests.support.records import event_record as happened

from lockstep import service
from lockstep.catalog import connect
from lockstep.definition.tables import Tables
from lockstep.settings import Settings


@contextmanager
def running_alone(settings: Settings, name: str) -> Iterator[tuple[Callable[..., None], Callable[[], list[Any]]]]:
    """Run a view live on topics and tables of its own.

    Gives a function that sends records, and one that reads the view's rows. At the end, batch must have the same rows.
    """
    with alone(settings, name) as one, connect(settings, "live") as spark:
        running = service.start(spark, settings, one.view)

        def rows() -> list[Any]:
            running.processAllAvailable()
            return one.live_rows(spark)

        try:
            yield one.feed, rows
            assert sorted(map(str, rows())) == sorted(map(str, one.take()))
        finally:
            running.stop()


def user(age: int, second: float) -> dict[str, Any]:
    times = {"created_at": at(0).isoformat(), "updated_at": at(second).isoformat()}
    return {"user_id": "123", "name": "Alice", "email": "a@example.com", "age": age} | times


def test_a_page_view_has_the_user_as_of_its_time(settings: Settings) -> None:
    with running_alone(settings, "page_views_enriched") as (feed, rows):
        views = [happened("page_views", n, s, user_id="123", page="/") for n, s in enumerate((0, 300))]
        feed(changed("users", 7, 0, None, user(30, 0)), *views, passed=600)
        assert sorted((row["event_id"], row["age"], row["version"]) for row in rows()) == [("e0", 30, 7), ("e1", 30, 7)]
        feed(changed("users", 9, 900, user(30, 0), user(31, 180)), passed=1000)
        assert sorted((row["event_id"], row["age"], row["version"]) for row in rows()) == [("e0", 30, 7), ("e1", 31, 9)]


# As docs/tables-in-views.md has it.
_KNOWN_THEN = """
SELECT viewed.event_id, known._lsn AS known_version, known.age AS known_age
FROM {views} viewed LEFT JOIN {history} known
  ON known.user_id = viewed.user_id
  AND known.valid_from <= viewed.event_time AND (known.valid_to IS NULL OR viewed.event_time < known.valid_to)
  AND known.known_from <= viewed.event_time AND (known.known_to IS NULL OR viewed.event_time < known.known_to)
"""


def test_what_was_known_of_the_user_is_what_the_history_says(settings: Settings) -> None:
    with alone(settings, "page_views_enriched") as one:
        views = [happened("page_views", n, s, user_id="123", page="/") for n, s in enumerate((0, 300, 500, 700, 900))]
        one.feed(
            changed("users", 5, 100, None, user(30, 50)),
            changed("users", 7, 400, user(30, 50), user(31, 200)),
            changed("users", 8, 600, user(31, 200), user(32, 600)),
            changed("users", 9, 800, user(32, 600), None),
            *views,
            passed=1000,
        )
        found = {row["event_id"]: (row["known_version"], row["known_age"]) for row in one.take()}
        tables = {stream: Tables.of(contract) for stream, contract in one.own.items()}
        names = {"views": tables["page_views"].log, "history": tables["users"].history}
        with connect(settings, "batch") as spark:
            rows = spark.sql(_KNOWN_THEN.format(**names)).collect()
    assert found == {"e0": (None, None), "e1": (5, 30), "e2": (7, 31), "e3": (8, 32), "e4": (None, None)}
    assert {row["event_id"]: (row["known_version"], row["known_age"]) for row in rows} == found


@pytest.fixture
def order() -> dict[str, Any]:
    return {
        "order_id": "1",
        "user_id": "123",
        "country": "UK",
        "kind": "sale",
        "ordered_at": at(5).isoformat(),
        "amount": "100.000",
    }


def test_an_order_follows_its_customer(settings: Settings, order: dict[str, Any]) -> None:
    with running_alone(settings, "orders_with_customer") as (feed, rows):
        feed(changed("users", 1, 0, None, user(30, 0)), changed("orders", 2, 5, None, order), passed=60)
        (alice,) = rows()
        assert (alice["order_id"], alice["amount"], alice["age"], alice["deleted"]) == ("1", 100, 30, False)
        smith = user(30, 9) | {"name": "Alice Smith"}
        moved = order | {"order_id": "2", "user_id": "9"}
        feed(
            changed("users", 3, 9, user(30, 0), smith),
            changed("orders", 4, 9, None, order | {"order_id": "2"}),
            changed("orders", 5, 10, order | {"order_id": "2"}, moved),
            passed=70,
        )
        orders = {(row["order_id"], row["customer"]): row for row in rows()}
        assert orders["1", "123"]["name"] != alice["name"]
        assert [(key, row["deleted"]) for key, row in sorted(orders.items()) if key[0] == "2"] == [
            (("2", "123"), True),
            (("2", "9"), False),
        ]


def test_a_price_change_reaches_those_who_followed_before_it_even_if_it_arrives_before_their_follows(
    settings: Settings,
) -> None:
    def product(price: int, second: float) -> dict[str, Any]:
        text = {"product_id": "P1", "description": "LAMP", "updated_at": at(second).isoformat()}
        return text | {"price": f"{price}.000"}

    def follow(number: int, who: str, second: float) -> Any:
        return happened("follows", number, second, user_id=who, product_id="P1", follows=True)

    with running_alone(settings, "price_changes_followed") as (feed, rows):
        changes = (
            changed("products", 1, 0, None, product(5, 0)),
            changed("products", 2, 1, product(5, 0), product(6, 300)),
        )
        feed(*changes, follow(1, "anna", 10), passed=200)
        assert rows() == []
        feed(follow(2, "ben", 250), follow(3, "cleo", 350), passed=600)
        assert sorted((row["user_id"], row["new_price"]) for row in rows()) == [("anna", 6), ("ben", 6)]
        feed(changed("products", 3, 700, product(6, 300), product(4, 320)), passed=700)
        assert sorted(row["user_id"] for row in rows() if row["version"] == 3) == ["anna", "ben"]


def test_the_session_of_a_query_does_not_keep_its_micro_batches(settings: Settings) -> None:
    """By default it keeps the plans of the last 16, with their RDDs and broadcasts: half of what lived in the server's heap."""
    with alone(settings, "page_views_enriched") as one, connect(settings, "live") as spark:
        running = service.start(spark, settings, one.view)
        running.stop()
        assert spark.conf.get("spark.connect.session.planCache.enabled") == "false"
