"""Search click-through: each search with each click on its results within an hour, or with no click.

A left outer join of ``searches`` and ``clicks`` of the same session and query, ``0 <= clicked - searched <= 1 hour``. A search
without a click becomes a row (``click_no`` 0, no position) when its hour is over.
"""

from datetime import timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.joins import IntervalJoin, composite_key
from lockstep.definition.keyed import Row
from lockstep.definition.view import MICROSECOND

WITHIN = timedelta(hours=1)
_MILLISECOND = timedelta(milliseconds=1)


def _row(search: Event, click: Event | None, number: int) -> Row:
    return {
        "query": search.data["query"],
        "session_id": search.data["session_id"],
        "search_id": search.data["event_id"],
        "searched_at": search.time,
        "click_no": number,
        "click_id": click.data["event_id"] if click else None,
        "position": click.data["position"] if click else None,
        "product_id": click.data["product_id"] if click else None,
        "delay_ms": (click.time - search.time) // _MILLISECOND if click else None,
    }


JOIN = IntervalJoin("searches", WITHIN, _row)

VIEW = Keyed(
    name="search_click_through",
    description="Each search with each click on its results within an hour, or with none.",
    columns={
        "query": "STRING",
        "session_id": "STRING",
        "search_id": "STRING",
        "searched_at": "TIMESTAMP",
        "click_no": "INT",
        "click_id": "STRING",
        "position": "INT",
        "product_id": "STRING",
        "delay_ms": "BIGINT",
    },
    column_descriptions={
        "search_id": "The search: its event_id.",
        "searched_at": "When the visitor searched (UTC).",
        "click_no": "The number of the click among those of the search, from 1; 0: nobody clicked.",
        "click_id": "The click: its event_id; null without a click.",
        "position": "The place of the result that was clicked, from 1; null without a click.",
        "product_id": "The product that was clicked; null without a click.",
        "delay_ms": "From the search to the click, in milliseconds; null without a click.",
    },
    key=("search_id", "click_no"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(
        Input("searches", composite_key("session_id", "query"), ("event_id", "session_id", "query")),
        Input("clicks", composite_key("session_id", "query"), ("event_id", "position", "product_id")),
    ),
    process=JOIN.process,
    timer=JOIN.timer,
    on_timer=JOIN.on_timer,
    lookback=WITHIN + MICROSECOND,
)
