"""What every contract must keep, so that bronze, silver and the simulator may rely on it."""

import pytest

from lockstep.contracts import CONTRACTS, Contract

EVENTS = {
    *("page_views", "searches", "impressions", "clicks", "logins", "payments", "requests", "sensors"),
    *("follows", "saved_searches"),
}
CHANGES = {"users", "products", "inventory", "orders", "order_lines"}
every_contract = pytest.mark.parametrize("contract", CONTRACTS.values(), ids=list(CONTRACTS))


def test_the_shop_has_ten_event_streams_and_five_captured_tables() -> None:
    # Beside them there may be streams of your own.
    assert {c.name for c in CONTRACTS.values() if c.kind == "events"} >= EVENTS
    assert {c.name for c in CONTRACTS.values() if c.kind == "changes"} >= CHANGES


@every_contract
def test_every_named_column_is_in_the_schema(contract: Contract) -> None:
    named = {*contract.key, *contract.unique_id, *contract.required, *contract.pii, contract.event_time} - {""}
    assert named <= contract.columns.keys()


@every_contract
def test_identity_and_time_are_required(contract: Contract) -> None:
    needed = {*contract.key, *contract.unique_id}
    if contract.kind == "events":
        needed.add(contract.event_time)
    assert needed <= set(contract.required)


@every_contract
def test_the_topic_is_named_by_its_kind(contract: Contract) -> None:
    prefix = "shop.public." if contract.kind == "changes" else ""
    assert contract.topic == prefix + contract.name


def test_of_the_shop_only_names_and_mail_addresses_of_users_are_personal() -> None:
    shop = {name: CONTRACTS[name].pii for name in EVENTS | CHANGES}
    assert {name: personal for name, personal in shop.items() if personal} == {"users": ("name", "email")}
