"""Ad click-through: each impression of an advertisement with each click that followed it, or with no click.

A left outer join of ``impressions`` and ``clicks`` of the same ad and user, ``0 <= clicked - shown <= 10 minutes``. An impression
without a click becomes a row (``click_no`` 0) when its ten minutes are over.
"""

from datetime import timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.joins import IntervalJoin, composite_key
from lockstep.definition.keyed import Row
from lockstep.definition.view import MICROSECOND

WITHIN = timedelta(minutes=10)
_MILLISECOND = timedelta(milliseconds=1)


def _row(shown: Event, click: Event | None, number: int) -> Row:
    return {
        "ad_id": shown.data["ad_id"],
        "user_id": shown.data["user_id"],
        "impression_id": shown.data["event_id"],
        "shown_at": shown.time,
        "click_no": number,
        "click_id": click.data["event_id"] if click else None,
        "clicked_at": click.time if click else None,
        "delay_ms": (click.time - shown.time) // _MILLISECOND if click else None,
    }


JOIN = IntervalJoin("impressions", WITHIN, _row)

VIEW = Keyed(
    name="ad_click_through",
    description="Each impression of an advertisement with each click that followed within ten minutes, or with none.",
    columns={
        "ad_id": "STRING",
        "user_id": "STRING",
        "impression_id": "STRING",
        "shown_at": "TIMESTAMP",
        "click_no": "INT",
        "click_id": "STRING",
        "clicked_at": "TIMESTAMP",
        "delay_ms": "BIGINT",
    },
    column_descriptions={
        "impression_id": "The impression: its event_id.",
        "shown_at": "When the advertisement was shown (UTC).",
        "click_no": "The number of the click among those of the impression, from 1; 0: nobody clicked.",
        "click_id": "The click: its event_id; null without a click.",
        "clicked_at": "When it was clicked (UTC); null without a click.",
        "delay_ms": "From the impression to the click, in milliseconds; null without a click.",
    },
    key=("impression_id", "click_no"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(
        Input("impressions", composite_key("ad_id", "user_id"), ("event_id", "ad_id", "user_id")),
        Input("clicks", composite_key("ad_id", "user_id"), ("event_id",)),
    ),
    process=JOIN.process,
    timer=JOIN.timer,
    on_timer=JOIN.on_timer,
    lookback=WITHIN + MICROSECOND,
)
