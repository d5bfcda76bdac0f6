"""Streams are of events or of changes, and what works on one kind asks for it in one place."""

from dataclasses import replace

import pytest

from lockstep.contracts import CONTRACTS, Contract, captured_tables, of_kind

VISITS = Contract("visits", "visits", "events", {"id": "STRING"}, ("id",), ("id",), "")
USERS = replace(VISITS, name="users", topic="shop.public.users", kind="changes")
ORDERS = replace(USERS, name="orders", topic="shop.public.orders")
MINUTES = replace(USERS, name="minutes", topic="results.minutes", view="visits_per_minute")


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with these streams."""
    monkeypatch.setattr(
        CONTRACTS, "_loaded", {contract.name: contract for contract in (MINUTES, ORDERS, USERS, VISITS)}
    )


def test_all_streams_of_a_kind_are_in_the_order_of_the_project() -> None:
    assert [*of_kind("changes").items()] == [("minutes", MINUTES), ("orders", ORDERS), ("users", USERS)]
    assert of_kind("events") == {"visits": VISITS}


def test_of_some_streams_only_those_of_the_kind_are_left_in_their_order() -> None:
    assert [*of_kind("changes", ["users", "visits", "orders"])] == ["users", "orders"]
    assert of_kind("events", ["users"]) == {}


def test_of_no_stream_none_is_left() -> None:
    assert of_kind("changes", []) == {}


def test_the_results_of_a_view_are_changes_of_no_captured_table() -> None:
    assert [*captured_tables().items()] == [("orders", ORDERS), ("users", USERS)]
    assert [*captured_tables(["users", "minutes", "visits"])] == ["users"]
