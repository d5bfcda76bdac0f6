"""Click-through rate per ad: the share of the impressions in each ten minutes that their user clicked.

A click counts as in ``ad_click_through``, so a window becomes a row ten minutes after its end.
"""

from datetime import datetime, timedelta
from typing import Any

from lockstep.definition import Input, Keyed
from lockstep.definition.joins import IntervalRate
from lockstep.definition.keyed import Row
from lockstep.definition.view import MICROSECOND

WITHIN = timedelta(minutes=10)
SIZE = timedelta(minutes=10)


def _rows(start: datetime, ad_id: str, clicks: list[set[Any]]) -> list[Row]:
    clicked = sum(1 for of_impression in clicks if of_impression)
    window = {"window_start": start, "window_end": start + SIZE}
    return [window | {"ad_id": ad_id, "impressions": len(clicks), "clicked": clicked, "ctr": clicked / len(clicks)}]


RATE = IntervalRate("impressions", WITHIN, SIZE, key="ad_id", who="user_id", slot="ad_id", rows=_rows)

VIEW = Keyed(
    name="ad_ctr",
    description="Of the impressions of each advertisement in ten minutes, how many were clicked.",
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "ad_id": "STRING",
        "impressions": "BIGINT",
        "clicked": "BIGINT",
        "ctr": "DOUBLE",
    },
    column_descriptions={
        "impressions": "How often it was shown in the window.",
        "clicked": "How many of these impressions their user clicked within ten minutes.",
        "ctr": "The click-through rate: clicked divided by impressions, from 0 to 1.",
    },
    key=("window_start", "ad_id"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(
        Input("impressions", "ad_id", ("ad_id", "user_id")),
        Input("clicks", "ad_id", ("ad_id", "user_id")),
    ),
    process=RATE.process,
    timer=RATE.timer,
    on_timer=RATE.on_timer,
    lookback=SIZE + WITHIN + MICROSECOND,
)
