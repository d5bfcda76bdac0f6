"""The balance of each account after each event: for each row, all events of the ledger up to it are added up."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed

Event = tuple[Any, ...]


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each account that an event names. An event that moves money within one account moves none."""
    values = (record.value or {} for record in on_time(accepted(records["account_events"]), 10))
    events = sorted(((parsed(v["event_time"]), v["event_id"], v) for v in values), key=lambda event: event[:2])
    result = []
    for number, (_, event_id, value) in enumerate(events):
        for account, posted in changes(value).items():
            before = (
                changes(v).get(account, Decimal(0)) for *_, v in events[:number] if v["ledger"] == value["ledger"]
            )
            row = {"ledger": value["ledger"], "account": account, "event_id": event_id, "posted": posted}
            result.append(row | {"balance": sum(before, posted)})
    return result


def changes(event: Mapping[str, Any]) -> dict[str, Decimal]:
    """By account, how much an event changes its balance by; zero: it was opened."""
    if event["type"] == "opened":
        return {event["account"]: Decimal(0)}
    payer, payee = event["from_account"], event["to_account"]
    return {} if payer == payee else {payer: -Decimal(event["amount"]), payee: Decimal(event["amount"])}
