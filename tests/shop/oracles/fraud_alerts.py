"""Payments from another country than a login of the last five minutes."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """One alert for each such payment, with the newest such login."""
    logins = [r.value for r in on_time(accepted(records["logins"]), 10)]
    alerts = []
    for record in on_time(accepted(records["payments"]), 10):
        payment = record.value
        suspects = []
        for login in logins:
            seconds = (parsed(payment["event_time"]) - parsed(login["event_time"])).total_seconds()
            same_user = login["user_id"] == payment["user_id"]
            differs = login.get("country") and payment.get("country") and login["country"] != payment["country"]
            if login["success"] and same_user and differs and 0 < seconds < 300:
                suspects.append((parsed(login["event_time"]), login["event_id"], login["country"]))
        if suspects:
            login_at, login_id, login_country = max(suspects)
            alerts.append(
                {
                    "user_id": payment["user_id"],
                    "payment_id": payment["event_id"],
                    "order_id": payment["order_id"],
                    "amount": Decimal(payment["amount"]),
                    "payment_country": payment["country"],
                    "login_id": login_id,
                    "login_country": login_country,
                    "login_at": login_at,
                }
            )
    return alerts
