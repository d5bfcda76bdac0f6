"""Page views per minute by page: a tumbling window, 5 s of allowed lateness."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import per_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


MINUTE = timedelta(minutes=1)


def transform(page_views: "DataFrame") -> "DataFrame":
    """Count the views of each page in each minute."""
    return per_window(page_views, MINUTE, MINUTE, ["page"], F.count("*").alias("views"))


VIEW = Windowed(
    name="page_views_per_minute",
    description="Views of each page in each minute.",
    input="page_views",
    transform=transform,
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
