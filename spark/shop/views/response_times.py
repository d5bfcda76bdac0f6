"""How fast each endpoint answered over the last hour, every five minutes. Late requests are a side output.

Times are counted in fixed buckets, which keep a time's first five binary digits. So a bucket is at most 1/16 of its lower bound
wide. A quantile is the middle of its bucket: it is at most 3.2 % off, and exact below 32 ms. Counts, the mean and the error rate
are exact.
"""

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.definition.mergeable import Mergeable, combined, mergeable
from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import COUNT, counts_of

if TYPE_CHECKING:
    from pyspark.sql import Column

SIZE, SLIDE = timedelta(hours=1), timedelta(minutes=5)
DIGITS = 5
# Room for every bucket of a 31-bit number: 32 up to five digits, and 16 for each of the 26 lengths above.
BUCKETS = 512
PERCENTS = (50, 95, 99)
# What is aggregated, in SQL.
TIME = "greatest(CAST(response_ms AS BIGINT), 0)"
# The bucket: the time with zeros after its first binary digits. Integers only, so that nothing is rounded.
LOWER_BOUND = f"{TIME} - pmod({TIME}, shiftleft(1L, greatest(length(bin({TIME})) - {DIGITS}, 0)))"
ERRORS = mergeable("count_if(status >= 500)", "sum({})")
TOTAL = mergeable(f"sum({TIME})", "sum({})")


def with_quantiles(row: "Column") -> "Column":
    """The counts of a window, and the quantiles and the histogram of its times."""
    found = {f"p{percent}_ms": _quantile(row, percent) for percent in PERCENTS}
    found["histogram"] = F.transform(
        row["buckets"],
        lambda b: F.struct(b["item"].alias("from_ms"), (b["item"] + _width(b["item"])).alias("to_ms"), b["count"]),
    )
    return F.array(F.struct(*(found.get(name, row[name]).alias(name) for name in VIEW.columns)))


def _width(time: "Column") -> "Column":
    digits = F.greatest(F.length(F.bin(time)) - DIGITS, F.lit(0))
    return F.call_function("shiftleft", F.lit(1).cast("bigint"), digits)


def _quantile(row: "Column", percent: int) -> "Column":
    """The middle of the first bucket at whose end at least ``percent`` of the requests are counted."""
    needed = row["requests"] * percent
    start = F.struct(F.lit(0).cast("bigint").alias("below"), F.lit(None).cast("bigint").alias("bucket"))
    bucket = F.aggregate(
        row["buckets"],
        start,
        lambda so_far, bucket: F.struct(
            (so_far["below"] + bucket["count"]).alias("below"),
            F.when(so_far["below"] * 100 < needed, bucket["item"]).otherwise(so_far["bucket"]).alias("bucket"),
        ),
        lambda end: end["bucket"],
    )
    return (bucket + (_width(bucket) - 1) / F.lit(2)).cast("decimal(12,1)")


def _share(part: Mergeable, kind: str) -> Mergeable:
    """A number divided by that of all requests, exactly."""
    return combined(f"CAST(CAST({{0}} AS DECIMAL(20,0)) / CAST({{1}} AS DECIMAL(20,0)) AS {kind})", part, COUNT)


VIEW = Windowed(
    name="response_times",
    description="How fast each endpoint answered over the last hour, every five minutes.",
    input="requests",
    by={"endpoint": "endpoint"},
    measures={
        "requests": COUNT,
        "errors": ERRORS,
        "error_rate": _share(ERRORS, "DECIMAL(9,6)"),
        "mean_ms": _share(TOTAL, "DECIMAL(18,3)"),
        "buckets": counts_of(LOWER_BOUND, BUCKETS),
    },
    result=with_quantiles,
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
