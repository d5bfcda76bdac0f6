"""Page views per minute by page: a tumbling window, 5 s of allowed lateness."""

from datetime import timedelta

from lockstep.definition.windowed import Windowed

MINUTE = timedelta(minutes=1)

VIEW = Windowed(
    name="page_views_per_minute",
    description="Views of each page in each minute.",
    input="page_views",
    by={"page": "page"},
    measures={"views": "count(*)"},
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "page": "STRING",
        "views": "BIGINT",
    },
    column_descriptions={
        "views": "How many views it had in the window.",
    },
    key=("window_start", "page"),
    event_time="event_time",
    size=MINUTE,
    slide=MINUTE,
    allowed_lateness=timedelta(seconds=5),
)
