"""A sample of the traffic: six minutes of every ten, by page. Views between two windows are not counted."""

from datetime import timedelta

from lockstep.definition.windowed import Windowed

SIZE, SLIDE = timedelta(minutes=6), timedelta(minutes=10)

VIEW = Windowed(
    name="sampled_traffic",
    description="Views of each page in the first six of every ten minutes.",
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
    size=SIZE,
    slide=SLIDE,
    allowed_lateness=timedelta(seconds=10),
)
