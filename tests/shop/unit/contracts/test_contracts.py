"""What every contract must keep, so that bronze, silver and the simulator may rely on it."""

import pytest

from lockstep.commands.aggregate import ENVELOPE
from lockstep.commands.registry import AGGREGATES
from lockstep.contracts import CONTRACTS, Contract

EVENTS = {
    *("page_views", "searches", "impressions", "clicks", "logins", "payments", "requests", "sensors"),
    *("follows", "saved_searches"),
}
# Streams of what aggregates have decided, and their topics.
OF_AGGREGATES = {"account_events": "accounts.events", "cart_events": "carts.events"}
CHANGES = {"users", "products", "inventory", "orders", "order_lines"}
every_contract = pytest.mark.parametrize("contract", CONTRACTS.values(), ids=list(CONTRACTS))


def test_the_shop_has_ten_event_streams_those_of_its_aggregates_and_five_captured_tables() -> None:
    # Beside them there may be streams of your own.
    assert {c.name for c in CONTRACTS.values() if c.kind == "events"} >= EVENTS | OF_AGGREGATES.keys()
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
    assert contract.topic == OF_AGGREGATES.get(contract.name, prefix + contract.name)


def test_a_stream_of_an_aggregate_has_its_topic_and_partitions_and_each_field_of_its_events() -> None:
    of = {aggregate.topic("events"): aggregate for aggregate in AGGREGATES.values()}
    assert of.keys() == {*OF_AGGREGATES.values()}
    for name, topic in OF_AGGREGATES.items():
        contract, aggregate = CONTRACTS[name], of[topic]
        fields = {field for event in aggregate.events for field in event.model_fields}
        assert (contract.partitions, {*contract.columns}) == (aggregate.partitions, {*ENVELOPE, *fields})


def test_of_the_shop_only_names_and_mail_addresses_of_users_are_personal() -> None:
    shop = {name: CONTRACTS[name].pii for name in EVENTS | CHANGES | OF_AGGREGATES.keys()}
    assert {name: personal for name, personal in shop.items() if personal} == {"users": ("name", "email")}
