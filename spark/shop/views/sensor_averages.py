"""The readings of each sensor in each minute. Late readings correct them for ten minutes."""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import per_window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SIZE = timedelta(minutes=1)


def transform(sensors: "DataFrame") -> "DataFrame":
    """Average, lowest and highest reading. Decimals are exact, so the order of addition does not matter."""
    reading = F.col("reading")
    average = (F.sum(reading) / F.count("*")).cast("decimal(18,6)")
    return per_window(
        sensors,
        SIZE,
        SIZE,
        ["sensor_id", "metric"],
        F.count("*").alias("readings"),
        average.alias("average"),
        F.min(reading).alias("lowest"),
        F.max(reading).alias("highest"),
    )


VIEW = Windowed(
    name="sensor_averages",
    description="What each sensor measured in each minute. Late readings correct it for ten minutes.",
    input="sensors",
    transform=transform,
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "sensor_id": "STRING",
        "metric": "STRING",
        "readings": "BIGINT",
        "average": "DECIMAL(18,6)",
        "lowest": "DECIMAL(9,3)",
        "highest": "DECIMAL(9,3)",
    },
    column_descriptions={
        "readings": "How many readings there are in the window.",
        "average": "Their average, in the unit of the metric.",
        "lowest": "The lowest of them.",
        "highest": "The highest of them.",
    },
    key=("window_start", "sensor_id", "metric"),
    size=SIZE,
    slide=SIZE,
    allowed_lateness=timedelta(seconds=30),
    policy="correct",
    correct_within=timedelta(minutes=10),
)
