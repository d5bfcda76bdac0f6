"""Page views in five minutes, every minute, by page: windows that overlap."""

from datetime import timedelta

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import COUNT

SIZE, SLIDE = timedelta(minutes=5), timedelta(minutes=1)

VIEW = Windowed(
    name="page_views_per_five_minutes",
    description="Views of each page in five minutes, every minute.",
    input="page_views",
    by={"page": "page"},
    measures={"views": COUNT},
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
    allowed_lateness=timedelta(seconds=5),
)
