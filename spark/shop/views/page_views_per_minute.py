"""Page views per minute by page: a tumbling window, 5 s of allowed lateness."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.windowed import Windowed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def transform(page_views: "DataFrame") -> "DataFrame":
    """Count the views of each page in each minute."""
    per_minute = page_views.groupBy(F.window("event_time", "1 minute"), "page").agg(F.count("*").alias("views"))
    return per_minute.select("window.start", "window.end", "page", "views").toDF(
        "window_start", "window_end", "page", "views"
    )


VIEW = Windowed(
    name="page_views_per_minute",
    input="page_views",
    transform=transform,
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "page": "STRING",
        "views": "BIGINT",
    },
    key=("window_start", "page"),
    event_time="event_time",
    size=timedelta(minutes=1),
    slide=timedelta(minutes=1),
    allowed_lateness=timedelta(seconds=5),
)
