"""A sample of the traffic: six minutes of every ten, by page. Views between two windows are not counted."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import per_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIZE, SLIDE = timedelta(minutes=6), timedelta(minutes=10)


def transform(page_views: "DataFrame") -> "DataFrame":
    """Count the views of each page in the first six of every ten minutes."""
    return per_window(page_views, SIZE, SLIDE, ["page"], F.count("*").alias("views"))


VIEW = Windowed(
    name="sampled_traffic",
    description="Views of each page in the first six of every ten minutes.",
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
    size=SIZE,
    slide=SLIDE,
    allowed_lateness=timedelta(seconds=10),
)
