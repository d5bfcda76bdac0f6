"""Fraud alerts: a payment from one country, less than five minutes after a login from another.

Each such payment is one alert, with the newest login from another country. A login at the instant of the payment does not count.
"""

from datetime import datetime, timedelta
from decimal import Decimal

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.alerting import Alerting
from lockstep.definition.keyed import Row, State

WINDOW = timedelta(seconds=300)


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the user's logins in the window: time, id and country."""
    logins = [login for login in state or [] if event.time - login[0] < WINDOW]
    if event.stream == "logins":
        return [*logins, [event.time, event.data["event_id"], event.data["country"]]], []
    elsewhere = [login for login in logins if login[0] < event.time and login[2] != event.data["country"]]
    return logins or None, [_alert(event, *elsewhere[-1])] if elsewhere else []


def _alert(payment: Event, login_at: datetime, login_id: str, login_country: str) -> Row:
    return {
        "user_id": payment.data["user_id"],
        "payment_id": payment.data["event_id"],
        "order_id": payment.data["order_id"],
        "amount": Decimal(payment.data["amount"]),
        "payment_country": payment.data["country"],
        "login_id": login_id,
        "login_country": login_country,
        "login_at": login_at,
    }


def timer(state: State) -> datetime:
    """When the newest login leaves the window."""
    newest: datetime = state[-1][0]
    return newest + WINDOW


def on_timer(_: State, __: datetime) -> tuple[State, list[Row]]:
    """Forget the user: no login is left in the window."""
    return None, []


VIEW = Keyed(
    name="fraud_alerts",
    description="A payment from one country, less than five minutes after a login from another.",
    columns={
        "user_id": "STRING",
        "payment_id": "STRING",
        "order_id": "STRING",
        "amount": "DECIMAL(14,3)",
        "payment_country": "STRING",
        "login_id": "STRING",
        "login_country": "STRING",
        "login_at": "TIMESTAMP",
    },
    column_descriptions={
        "payment_id": "The payment: its event_id.",
        "payment_country": "The country that the payment came from.",
        "login_id": "The newest login from another country: its event_id.",
        "login_country": "The country that the login came from.",
        "login_at": "When the login happened (UTC).",
    },
    key=("payment_id",),
    allowed_lateness=timedelta(seconds=10),
    inputs=(
        Input("logins", "user_id", ("event_id", "country"), where="success AND country IS NOT NULL"),
        Input(
            "payments", "user_id", ("event_id", "user_id", "order_id", "amount", "country"), where="country IS NOT NULL"
        ),
    ),
    process=process,
    timer=timer,
    on_timer=on_timer,
    lookback=WINDOW,
    alerts=Alerting(id=("payment_id",), key="user_id"),
)
