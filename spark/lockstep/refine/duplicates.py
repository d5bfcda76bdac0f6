"""Which rows come twice: of each identity the first is kept, and what comes soon after it is a duplicate."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from lockstep import lake
from lockstep.definition.columns import POSITION, generation
from lockstep.ledger.ranges import Range, decode
from lockstep.refine.parse import GOOD

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def arrivals(settings: "Settings", bronze: str, ranges: list[Range]) -> tuple[datetime, datetime] | None:
    """Times (UTC) between which all rows of the ranges arrived, by the statistics of bronze's log; None if it does not say."""
    starts = {r.partition: r.start for r in ranges if r.size}
    times: list[str | None] = []
    for commit in lake.commits(settings, bronze):
        taken = decode(commit.record.get("ranges", ()))
        if any(r.size and r.end > starts.get(r.partition, r.end) for r in taken):
            times += (
                stats.get(end, {}).get("timestamp") for stats in commit.files for end in ("minValues", "maxValues")
            )
        if taken and all(r.start <= starts.get(r.partition, r.start) for r in taken):
            break
    else:
        # The log no longer has all that is taken.
        return None
    known = [datetime.fromisoformat(time) for time in times if time]
    return (min(known), max(known)) if known and len(known) == len(times) else None


def oldest_of(raw: "DataFrame") -> datetime | None:
    """The time (UTC, naive) at which the first of bronze's rows arrived; None: offsets of an aborted transaction have no row."""
    oldest: datetime | None = raw.agg(F.min("timestamp")).collect()[0][0]
    return oldest


def remembered(log: "DataFrame", oldest: datetime | None, contract: "Contract") -> "DataFrame":
    """The rows of silver's log of which a row that arrived at ``oldest`` (UTC) or later may be a duplicate; None: no row did."""
    if oldest is None:
        return log.where("false")
    rows = log.where(F.col("_arrival") >= F.lit(oldest) - _dedup_window(contract))
    return rows.withColumn("_generation", generation()) if contract.kind == "changes" else rows


def _dedup_window(contract: "Contract") -> "Column":
    return F.make_dt_interval(secs=F.lit(contract.dedup_window.total_seconds()))


def identity(contract: "Contract") -> tuple[str, ...]:
    """The columns by which a row is known again: an event's id, or the key of a change and its position in the source's log."""
    return (*contract.unique_id, *POSITION) if contract.kind == "changes" else contract.unique_id


def classify(
    parsed: "DataFrame",
    earlier: "DataFrame | None",
    contract: "Contract",
    order: tuple[str, ...] = ("_partition", "_offset"),
    span: timedelta | None = None,
) -> "DataFrame":
    """Set the outcome of each parsed row in ``_outcome``: silver, duplicates, quarantined, erased or markers. Pure.

    Of rows with the same identity, the first in ``order`` is kept, and after it each one that arrives longer than the contract's
    ``dedup_window`` after the last one that was kept. The others are duplicates. What was kept before is in ``earlier`` (silver's
    log; None: it is empty). So it does not matter how a partition's log is cut into runs.

    Args:
        span: how long after the first of the rows the last one arrived, at most; None: not known.
    """
    names = [*identity(contract)]
    rows = parsed.withColumn("_good", F.expr(GOOD))
    if earlier is None:
        rows = rows.withColumn("_known_at", F.lit(None).cast("timestamp"))
    else:
        known = earlier.groupBy(*names).agg(F.max("_arrival").alias("_known_at"))
        rows = rows.join(known, names, "left")
    once = span is not None and span <= contract.dedup_window
    kept = _keep_once if once else _keep
    outcome = (
        F.when(F.col("_erased"), "erased")
        .when(F.col("_marker"), "markers")
        .when(F.col("_reason").isNotNull(), "quarantined")
        .when(F.col("_kept"), "silver")
        .otherwise("duplicates")
    )
    classified = kept(rows, names, order, _dedup_window(contract)).withColumn("_outcome", outcome)
    return classified.drop("_good", "_known_at", "_kept")


def _keep_once(rows: "DataFrame", names: list[str], order: tuple[str, ...], dedup_window: "Column") -> "DataFrame":
    """Mark in ``_kept`` the rows to keep, where no identity can be kept twice: it costs no second look at the rows."""
    is_free = F.col("_known_at").isNull() | (F.col("_arrival") - F.col("_known_at") > dedup_window)
    first_free = Window.partitionBy("_good", *names).orderBy(F.desc("_is_free"), *order)
    marked = rows.withColumn("_is_free", is_free)
    return marked.withColumn("_kept", F.col("_is_free") & (F.row_number().over(first_free) == 1)).drop("_is_free")


def _keep(rows: "DataFrame", names: list[str], order: tuple[str, ...], dedup_window: "Column") -> "DataFrame":
    """Mark in ``_kept`` the rows to keep: go through the rows of each identity, in order, with the last one that was kept."""
    place = F.struct(*order)
    copies = F.array_sort(F.collect_list(F.struct(place.alias("place"), F.col("_arrival").alias("at")))).alias(
        "_copies"
    )
    copied = rows.where("_good").groupBy(*names).agg(copies, F.first("_known_at").alias("_known_at"))
    nothing = F.slice(F.transform("_copies", lambda copy: copy["place"]), 1, 0)

    def go_on(so_far: "Column", copy: "Column") -> "Column":
        is_free = so_far["at"].isNull() | (copy["at"] - so_far["at"] > dedup_window)
        with_copy = F.struct(copy["at"].alias("at"), F.concat(so_far["places"], F.array(copy["place"])).alias("places"))
        return F.when(is_free, with_copy).otherwise(so_far)

    start = F.struct(F.col("_known_at").alias("at"), nothing.alias("places"))
    places = F.aggregate("_copies", start, go_on, lambda end: end["places"]).alias("_places")
    marked = rows.join(copied.select(*names, places), names, "left")
    return marked.withColumn("_kept", F.array_contains("_places", place)).drop("_places")
