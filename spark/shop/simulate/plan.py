"""The plan of a simulation: chosen once, stored in the shop's database, and the same for every later run."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from shop.simulate import retail


class Amounts(BaseModel):
    """How much traffic is made, from which seed, and which shares of the events are disturbed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 7
    # The session of the customer who orders, and of visitors who only look.
    sessions_per_order: Annotated[int, Field(ge=1, le=1000)] = 2
    sensors: Annotated[int, Field(ge=0, le=1000)] = 4
    # In seconds.
    sensor_interval: Annotated[int, Field(ge=1, le=86_400)] = 1800
    duplicates: Annotated[float, Field(ge=0, le=1)] = 0.05
    late: Annotated[float, Field(ge=0, le=1)] = 0.01
    poisoned: Annotated[float, Field(ge=0, le=1)] = 0.001


class Plan(BaseModel):
    """Which part of the history is simulated, moved by how many weeks, and with which traffic. Times are UTC.

    Attributes:
        days: how many of the last days are simulated; None for the whole history.
        shift_weeks: by how many weeks the history is moved forward.
        start: the first order's earliest time, after the shift.
        end: the midnight that ends the last day, after the shift; nothing arrives after it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    days: int | None
    shift_weeks: int
    start: datetime
    end: datetime
    amounts: Amounts = Amounts()

    @classmethod
    def make(cls, raw: pd.DataFrame, days: int | None, amounts: Amounts, today: date) -> Self:
        """Plan the last ``days`` days of the file (``None``: all of it), moved so that they end before ``today``."""
        first, last = raw["InvoiceDate"].min().to_pydatetime(), raw["InvoiceDate"].max().to_pydatetime()
        weeks = retail.whole_weeks(last.date(), today)
        start = first if days is None else max(first, last - timedelta(days=days))
        shift = timedelta(weeks=weeks)
        return cls(
            days=days,
            shift_weeks=weeks,
            start=(start + shift).replace(tzinfo=UTC),
            end=datetime.combine(last.date() + timedelta(days=1), time(), UTC) + shift,
            amounts=amounts,
        )
