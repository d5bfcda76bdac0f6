"""The readings of each sensor in each minute. Late readings correct them for ten minutes."""

from datetime import timedelta

from lockstep.definition.windowed import Windowed

SIZE = timedelta(minutes=1)

VIEW = Windowed(
    name="sensor_averages",
    description="What each sensor measured in each minute. Late readings correct it for ten minutes.",
    input="sensors",
    by={"sensor_id": "sensor_id", "metric": "metric"},
    measures={
        "readings": "count(*)",
        # Decimals are exact, so the order of addition does not matter.
        "average": "CAST(sum(reading) / count(*) AS DECIMAL(18,6))",
        "lowest": "min(reading)",
        "highest": "max(reading)",
    },
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
