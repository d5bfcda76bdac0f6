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
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "ad_id": "STRING",
        "impressions": "BIGINT",
        "clicked": "BIGINT",
        "ctr": "DOUBLE",
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
