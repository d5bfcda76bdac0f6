"""Click-through rate per query and position: the share of the searches in each hour whose result at the position was clicked.

Position 0 stands for any position: the share of searches with at least one click. A click counts as in ``search_click_through``,
so an hour becomes a row one hour after its end. A click without a position counts for position 0 only.
"""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from lockstep.definition import Input, Keyed
from lockstep.definition.joins import IntervalRate
from lockstep.definition.keyed import Row
from lockstep.definition.view import MICROSECOND

WITHIN = timedelta(hours=1)
SIZE = timedelta(hours=1)
ANY = 0


def _rows(start: datetime, query: str, clicked_positions: list[set[Any]]) -> list[Row]:
    clicked = Counter(position for positions in clicked_positions for position in positions if position)
    clicked[ANY] = sum(1 for positions in clicked_positions if positions)
    window = {"window_start": start, "window_end": start + SIZE, "query": query, "searches": len(clicked_positions)}
    return [
        window | {"position": position, "clicked": count, "ctr": count / len(clicked_positions)}
        for position, count in sorted(clicked.items())
    ]


RATE = IntervalRate("searches", WITHIN, SIZE, key="query", who="session_id", slot="position", rows=_rows)

VIEW = Keyed(
    name="search_positions",
    description="Of the searches for each query in an hour, how many led to a click at each position.",
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "query": "STRING",
        "position": "INT",
        "searches": "BIGINT",
        "clicked": "BIGINT",
        "ctr": "DOUBLE",
    },
    column_descriptions={
        "position": "The place of a result in the list, from 1; 0 stands for any.",
        "searches": "How often the query was searched for in the window.",
        "clicked": "How many of these searches led to a click at the position within an hour.",
        "ctr": "The click-through rate: clicked divided by searches, from 0 to 1.",
    },
    key=("window_start", "query", "position"),
    allowed_lateness=timedelta(seconds=10),
    inputs=(
        Input("searches", "query", ("query", "session_id")),
        Input("clicks", "query", ("query", "session_id", "position")),
    ),
    process=RATE.process,
    timer=RATE.timer,
    on_timer=RATE.on_timer,
    lookback=SIZE + WITHIN + MICROSECOND,
)
