"""Orders paid in the last eight minutes, by country: one row whenever the number changes.

The number at any moment is in the newest row before it: ``max_by(orders, struct(at, orders))`` of the rows with ``at <= moment``.
The window is ``(moment - 8 min, moment]``.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

WINDOW = timedelta(minutes=8)


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the country, and the times of its orders in the window, oldest first."""
    country = event.data["country"] or "unknown"
    times = [*(state["times"] if state else []), event.time]
    return {"country": country, "times": times}, [{"country": country, "orders": len(times)}]


def timer(state: State) -> datetime:
    """When the oldest order leaves the window."""
    oldest: datetime = state["times"][0]
    return oldest + WINDOW


def on_timer(state: State, at: datetime) -> tuple[State, list[Row]]:
    """Orders of one instant leave the window together."""
    times = [time for time in state["times"] if time + WINDOW > at]
    left = state | {"times": times} if times else None
    return left, [{"country": state["country"], "orders": len(times)}]


VIEW = Keyed(
    name="orders_in_eight_minutes",
    description="How many orders of a country were paid in the last eight minutes; a row whenever the number changes.",
    columns={"country": "STRING", "orders": "BIGINT"},
    column_descriptions={
        "country": "The country that the payments came from; unknown where they have none.",
        "orders": "The orders that were paid in the eight minutes up to the instant of the row.",
    },
    # Each of several orders at one instant makes a row.
    key=("at", "country", "orders"),
    allowed_lateness=timedelta(seconds=30),
    inputs=(Input("payments", "coalesce(country, 'unknown')", ("country",)),),
    process=process,
    timer=timer,
    on_timer=on_timer,
    lookback=WINDOW,
)
