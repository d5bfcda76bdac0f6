"""Page views in five minutes, every minute, by page: windows that overlap."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import per_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIZE, SLIDE = timedelta(minutes=5), timedelta(minutes=1)


def transform(page_views: "DataFrame") -> "DataFrame":
    """Count the views of each page in each window; a view lies in five of them."""
    return per_window(page_views, SIZE, SLIDE, ["page"], F.count("*").alias("views"))


VIEW = Windowed(
    name="page_views_per_five_minutes",
    description="Views of each page in five minutes, every minute.",
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
    allowed_lateness=timedelta(seconds=5),
)
