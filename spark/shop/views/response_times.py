"""How fast each endpoint answered over the last hour, every five minutes. Late requests are a side output.

Times are counted in fixed buckets, which keep a time's first five binary digits. So a bucket is at most 1/16 of its lower bound
wide. A quantile is the middle of its bucket: it is at most 3.2 % off, and exact below 32 ms. Counts, the mean and the error rate
are exact.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import counts_of, per_window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SIZE, SLIDE = timedelta(hours=1), timedelta(minutes=5)
DIGITS = 5
# Room for every bucket of a 31-bit number: 32 up to five digits, and 16 for each of the 26 lengths above.
BUCKETS = 512
PERCENTS = (50, 95, 99)


def transform(requests: "DataFrame") -> "DataFrame":
    """The number of requests; the mean, quantiles and histogram of their times; the share of errors (status 500 and above)."""
    time = F.greatest(F.col("response_ms").cast("bigint"), F.lit(0))
    errors, all_of_them = F.count_if(F.col("status") >= 500), F.count("*")
    counted = per_window(
        requests,
        SIZE,
        SLIDE,
        ["endpoint"],
        all_of_them.alias("requests"),
        errors.alias("errors"),
        _ratio(errors, all_of_them, "decimal(9,6)").alias("error_rate"),
        _ratio(F.sum(time), all_of_them, "decimal(18,3)").alias("mean_ms"),
        counts_of(_lower_bound(time), BUCKETS).alias("buckets"),
    )
    quantiles = {f"p{percent}_ms": _quantile(percent) for percent in PERCENTS}
    histogram = F.transform(
        "buckets",
        lambda b: F.struct(b["item"].alias("from_ms"), (b["item"] + _width(b["item"])).alias("to_ms"), b["count"]),
    )
    return counted.withColumns(quantiles | {"histogram": histogram}).select(*VIEW.columns)


def _lower_bound(time: "Column") -> "Column":
    """The bucket: the time with zeros after its first binary digits. Integers only, so that nothing is rounded."""
    return time - F.pmod(time, _width(time))


def _width(time: "Column") -> "Column":
    digits = F.greatest(F.length(F.bin(time)) - DIGITS, F.lit(0))
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), digits)


def _quantile(percent: int) -> "Column":
    """The middle of the first bucket at whose end at least ``percent`` of the requests are counted."""
    needed = F.col("requests") * percent
    start = F.struct(F.lit(0).cast("bigint").alias("below"), F.lit(None).cast("bigint").alias("bucket"))
    bucket = F.aggregate(
        "buckets",
        start,
        lambda so_far, bucket: F.struct(
            (so_far["below"] + bucket["count"]).alias("below"),
            F.when(so_far["below"] * 100 < needed, bucket["item"]).otherwise(so_far["bucket"]).alias("bucket"),
        ),
        lambda end: end["bucket"],
    )
    return (bucket + (_width(bucket) - 1) / F.lit(2)).cast("decimal(12,1)")


def _ratio(part: "Column", whole: "Column", kind: str) -> "Column":
    return (part.cast("decimal(20,0)") / whole.cast("decimal(20,0)")).cast(kind)


VIEW = Windowed(
    name="response_times",
    description="How fast each endpoint answered over the last hour, every five minutes.",
    input="requests",
    transform=transform,
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "endpoint": "STRING",
        "requests": "BIGINT",
        "errors": "BIGINT",
        "error_rate": "DECIMAL(9,6)",
        "mean_ms": "DECIMAL(18,3)",
        "p50_ms": "DECIMAL(12,1)",
        "p95_ms": "DECIMAL(12,1)",
        "p99_ms": "DECIMAL(12,1)",
        "histogram": "ARRAY<STRUCT<from_ms:BIGINT,to_ms:BIGINT,count:BIGINT>>",
    },
    column_descriptions={
        "requests": "How many requests were answered in the window.",
        "errors": "How many of them with a status of 500 or above.",
        "error_rate": "errors divided by requests, from 0 to 1.",
        "mean_ms": "The mean response time, in milliseconds.",
        "p50_ms": "The median response time, in milliseconds: at most 3.2 % off, and exact below 32 ms.",
        "p95_ms": "95 of 100 requests took no longer, in milliseconds: at most 3.2 % off, and exact below 32 ms.",
        "p99_ms": "99 of 100 requests took no longer, in milliseconds: at most 3.2 % off, and exact below 32 ms.",
        "histogram": "Requests by response time: count took at least from_ms and less than to_ms milliseconds.",
    },
    key=("window_start", "endpoint"),
    size=SIZE,
    slide=SLIDE,
    allowed_lateness=timedelta(seconds=30),
    policy="side_output",
)
