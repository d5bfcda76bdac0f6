"""Silver: each event once, and each source row as it is now. Rows that fail validation are quarantined with their raw bytes.

One run takes what bronze has after silver's position. It commits in an order in which a crash between two commits does no harm:
quarantine first, then a change stream's current rows (a MERGE that writes newer LSNs only), and last the table whose ledger says
that the run is done. Each of the first two pins the ranges of the run: after a crash the retry must take the same ranges, because
its commit has the same transaction id, and is skipped. The deletes that stand for a TRUNCATE are written to the topic before the
last commit: a retry writes them again, and silver finds the second ones to be duplicates.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.columns import FIRST_GENERATION, POSITION, PROVENANCE, generation, log_columns
from lockstep.definition.tables import Tables
from lockstep.failpoints import failpoint
from lockstep.ledger.integrity import record_digest
from lockstep.ledger.ranges import Range, decode, ends, size, to_where
from lockstep.refine.classified import Classified, Rows, classified
from lockstep.refine.parse import GOOD, parse
from lockstep.refine.rows import silver_rows
from lockstep.refine.source_order import check_order, with_order
from lockstep.refine.truncates import newest_truncate, with_ended, write_deletes
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
QUARANTINE = {
    **PROVENANCE,
    "_reason": "STRING",
    "_key": "BINARY",
    "_value": "BINARY",
    "_run_id": "STRING",
}
QUARANTINE_PROPERTIES = ledger.RETENTION | {
    "delta.dataSkippingStatsColumns": "_topic,_partition,_offset,_arrival,_reason"
}


def behind(settings: "Settings", contract: "Contract") -> bool:
    """Whether silver lacks rows that bronze has, or columns (or wider types) that the contract has. Only the logs are read."""
    tables = Tables.of(contract)
    source, newest_entry = ledger.latest(settings, tables.bronze), ledger.latest(settings, tables.log)
    if source is None:
        return False
    if newest_entry is None or ends(newest_entry.ranges) != ends(source.ranges):
        return True
    has_new_code = newest_entry.code_version != code_version()
    return has_new_code and not lake.has_columns(settings, tables.log, log_columns(contract))


def refine(spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str) -> ledger.Entry | None:
    """Refine what bronze has and silver does not, at most ``max_offsets_per_run`` offsets.

    Returns:
        The new entry of the stream's silver ledger, whose counts add up to the rows read
        (``bronze = silver + duplicates + quarantined + markers``), or None when there was nothing new.

    Raises:
        Overtaken: another run has committed first.
    """
    tables = Tables.of(contract)
    with lease(settings, tables.log, run_id) as control:
        previous = ledger.latest(settings, tables.log)
        source = ledger.latest(settings, tables.bronze)
        ranges = _pinned(settings, tables, previous.seq + 1 if previous else 1) or ledger.pending(
            settings, source, previous, settings.max_offsets_per_run
        )
        if previous is None or previous.code_version != code_version():
            follow_columns(spark, settings, contract, tables)
        if size(ranges) == 0:
            return None
        written = _write(spark, settings, contract, tables, previous, ranges, run_id)
        record_digest(control, settings, tables.log, written.version)
        return written


def _pinned(settings: "Settings", tables: Tables, seq: int) -> list[Range]:
    """The ranges of a run that died between its first commit and its last: the retry must take the same."""
    for table in filter(None, (tables.current, tables.quarantine)):
        entry = ledger.latest(settings, table)
        if entry and entry.seq == seq:
            return list(entry.ranges)
    return []


def follow_columns(spark: "SparkSession", settings: "Settings", contract: "Contract", tables: Tables) -> None:
    """Have silver's tables with all columns of the contract. The caller holds the lease of the log.

    The log comes last: by its columns it is known that all was done.

    Raises:
        ColumnsRefused: the contract has other changes of its columns.
    """
    for table in filter(None, (tables.current, tables.log)):
        lake.create(spark, settings, table, log_columns(contract), properties=ledger.RETENTION)


def _write(
    spark: "SparkSession",
    settings: "Settings",
    contract: "Contract",
    tables: Tables,
    previous: ledger.Entry | None,
    ranges: list[Range],
    run_id: str,
) -> ledger.Entry:
    raw, columns = lake.read(spark, settings, tables.bronze).where(to_where(ranges)), [*log_columns(contract)]
    earlier = None
    if previous:
        oldest = _oldest(settings, tables.bronze, ranges) or oldest_of(raw)
        earlier = remembered(lake.read(spark, settings, tables.log), oldest, contract)
    if earlier is not None and lake.is_small(size(ranges)):
        earlier = with_ids_of(earlier, parse(raw, contract), contract)
    before = previous.newest if previous else {}
    rows = silver_rows(raw, contract, before)
    if tables.current:
        rows = with_order(rows, previous.commits if previous else {})
        rows = with_ended(rows, previous.truncated if previous else None)
    rows = classify(rows, earlier, contract, span=_span(settings, tables.bronze, ranges))
    with classified(rows, small=lake.is_small(size(ranges))) as found:
        if tables.current and found.any("_fallen"):
            check_order(spark, settings, contract, tables, rows)
        counts = found.counts()
        newest = {p: max(at, before.get(p, at)) for p, at in found.newest_timestamps().items()}
        unknown = found.unknown()
        _warn_of_new(contract, unknown, previous)
        more: dict[str, Any] = {"newest": {**before, **newest}, **({"unknown": unknown} if unknown else {})}
        if tables.current:
            more |= _source(found, rows, previous)
        record = ledger.record("refine", previous, run_id, ranges, counts=counts, **more)
        if counts["quarantined"]:
            lake.create(spark, settings, tables.quarantine, QUARANTINE, properties=QUARANTINE_PROPERTIES)
            _quarantine(found, settings, tables.quarantine, ranges, record)
            failpoint("quarantine-committed")
        if tables.current and counts["silver"]:
            _apply(found.newest(contract.unique_id, columns), settings, contract, tables.current, record)
            failpoint("changes-applied")
        if tables.current and (found.any("_truncates") or found.any("_ended")):
            write_deletes(spark, settings, contract, tables.current, more["truncated"])
            failpoint("deletes-written")
        lake.append(found.silver(columns), settings, tables.log, ledger.txn(tables.log, record), record)
        failpoint("silver-committed")
        return ledger.committed(settings, tables.log, record)


def _source(found: Classified, rows: "DataFrame", previous: ledger.Entry | None) -> dict[str, Any]:
    """How far the source's log has come, of a stream of changes: see :class:`lockstep.ledger.Entry`."""
    commits, truncated = (dict(previous.commits), previous.truncated) if previous else ({}, None)
    commits |= {p: max(at, commits.get(p, at)) for p, at in found.newest_commits().items()}
    return {
        "commits": commits,
        "truncated": newest_truncate(rows, truncated) if found.any("_truncates") else truncated,
    }


def _warn_of_new(contract: "Contract", unknown: Mapping[str, int], previous: ledger.Entry | None) -> None:
    if new := sorted(unknown.keys() - (previous.unknown.keys() if previous else set())):
        log.warning(
            "%s: %s has fields that the contract does not name: %s. Their values are in %s alone. Give the contract a column for "
            "each that you need; a replay of silver fills it for old rows.",
            Tables.of(contract).log,
            contract.topic,
            ", ".join(new),
            Tables.of(contract).bronze,
        )


def _quarantine(
    found: Classified, settings: "Settings", table: str, ranges: list[Range], record: dict[str, Any]
) -> None:
    """Append the rows that quarantine does not have yet. It may be ahead of silver, if an older run has committed meanwhile."""
    entry = ledger.latest(settings, table)
    position = ends(entry.ranges) if entry else {}
    missing = [replace(r, start=min(max(r.start, position.get(r.partition, 0)), r.end)) for r in ranges]
    if not size(missing):
        return
    bad = found.quarantined(missing, record["run_id"], [*QUARANTINE])
    lake.append(bad, settings, table, ledger.txn(table, record), record)
    ledger.committed(settings, table, record)


def _oldest(settings: "Settings", bronze: str, ranges: list[Range]) -> datetime | None:
    """A time (UTC) before which no row of the ranges arrived, by the statistics of bronze's log; None if it has none."""
    starts = {r.partition: r.start for r in ranges if r.size}
    lows: list[str | None] = []
    for commit in lake.commits(settings, bronze):
        taken = decode(commit.record.get("ranges", ()))
        if any(r.size and r.end > starts.get(r.partition, r.end) for r in taken):
            lows += (stats.get("minValues", {}).get("timestamp") for stats in commit.files)
        if taken and all(r.start <= starts.get(r.partition, r.start) for r in taken):
            break
    else:
        # The log no longer has all that is taken.
        return None
    known = [datetime.fromisoformat(low) for low in lows if low]
    return min(known) if known and len(known) == len(lows) else None


def _span(settings: "Settings", bronze: str, ranges: list[Range]) -> timedelta | None:
    """The time in which all rows of the ranges arrived, or more, by the statistics of bronze's log; None if it has none."""
    starts = {r.partition: r.start for r in ranges if r.size}
    times: list[str | None] = []
    for commit in lake.commits(settings, bronze):
        taken = [Range(**r) for r in commit.record.get("ranges", ())]
        if any(r.size and r.end > starts.get(r.partition, r.end) for r in taken):
            times += (
                stats.get(end, {}).get("timestamp") for stats in commit.files for end in ("minValues", "maxValues")
            )
        if taken and all(r.start <= starts.get(r.partition, r.start) for r in taken):
            break
    known = [datetime.fromisoformat(time) for time in times if time]
    return max(known) - min(known) if known and len(known) == len(times) else None


def oldest_of(raw: "DataFrame") -> datetime:
    """The time (UTC, naive) at which the first of bronze's rows arrived."""
    oldest: datetime = raw.agg(F.min("timestamp")).collect()[0][0]
    return oldest


def remembered(log: "DataFrame", oldest: datetime, contract: "Contract") -> "DataFrame":
    """The rows of silver's log of which a row that arrived at ``oldest`` (UTC) or later may be a duplicate."""
    rows = log.where(F.col("_arrival") >= F.lit(oldest) - _dedup_window(contract))
    return rows.withColumn("_generation", generation()) if contract.kind == "changes" else rows


def with_ids_of(earlier: "DataFrame", parsed: "DataFrame", contract: "Contract") -> "DataFrame":
    """The earlier rows that have the id of one of a few new rows. They need no sorting; a day of a log would."""
    identity = [*_identity(contract)]
    return earlier.join(F.broadcast(parsed.where(GOOD).select(*identity).distinct()), identity, "left_semi")


def _dedup_window(contract: "Contract") -> "Column":
    return F.make_dt_interval(secs=F.lit(contract.dedup_window.total_seconds()))


def _identity(contract: "Contract") -> tuple[str, ...]:
    return (*contract.unique_id, *POSITION) if contract.kind == "changes" else contract.unique_id


def classify(
    parsed: "DataFrame",
    earlier: "DataFrame | None",
    contract: "Contract",
    order: tuple[str, ...] = ("_partition", "_offset"),
    span: timedelta | None = None,
) -> "DataFrame":
    """Set the outcome of each parsed row in ``_outcome``: silver, duplicates, quarantined or markers. Pure.

    Of rows with the same identity, the first in ``order`` is kept, and after it each one that arrives longer than the contract's
    ``dedup_window`` after the last one that was kept. The others are duplicates. What was kept before is in ``earlier`` (silver's
    log; None: it is empty). So it does not matter how a partition's log is cut into runs.

    Args:
        span: how long after the first of the rows the last one arrived, at most; None: not known.
    """
    identity = [*_identity(contract)]
    rows = parsed.withColumn("_good", F.expr(GOOD))
    if earlier is None:
        rows = rows.withColumn("_known_at", F.lit(None).cast("timestamp"))
    else:
        known = earlier.groupBy(*identity).agg(F.max("_arrival").alias("_known_at"))
        rows = rows.join(known, identity, "left")
    once = span is not None and span <= contract.dedup_window
    kept = _keep_once if once else _keep
    outcome = (
        F.when(F.col("_marker"), "markers")
        .when(F.col("_reason").isNotNull(), "quarantined")
        .when(F.col("_kept"), "silver")
        .otherwise("duplicates")
    )
    classified = kept(rows, identity, order, _dedup_window(contract)).withColumn("_outcome", outcome)
    return classified.drop("_good", "_known_at", "_kept")


def _keep_once(rows: "DataFrame", identity: list[str], order: tuple[str, ...], dedup_window: "Column") -> "DataFrame":
    """Mark in ``_kept`` the rows to keep, where no identity can be kept twice: it costs no second look at the rows."""
    is_free = F.col("_known_at").isNull() | (F.col("_arrival") - F.col("_known_at") > dedup_window)
    first_free = Window.partitionBy("_good", *identity).orderBy(F.desc("_is_free"), *order)
    marked = rows.withColumn("_is_free", is_free)
    return marked.withColumn("_kept", F.col("_is_free") & (F.row_number().over(first_free) == 1)).drop("_is_free")


def _keep(rows: "DataFrame", identity: list[str], order: tuple[str, ...], dedup_window: "Column") -> "DataFrame":
    """Mark in ``_kept`` the rows to keep: go through the rows of each identity, in order, with the last one that was kept."""
    place = F.struct(*order)
    copies = F.array_sort(F.collect_list(F.struct(place.alias("place"), F.col("_arrival").alias("at")))).alias(
        "_copies"
    )
    copied = rows.where("_good").groupBy(*identity).agg(copies, F.first("_known_at").alias("_known_at"))
    nothing = F.slice(F.transform("_copies", lambda copy: copy["place"]), 1, 0)

    def go_on(so_far: "Column", copy: "Column") -> "Column":
        is_free = so_far["at"].isNull() | (copy["at"] - so_far["at"] > dedup_window)
        with_copy = F.struct(copy["at"].alias("at"), F.concat(so_far["places"], F.array(copy["place"])).alias("places"))
        return F.when(is_free, with_copy).otherwise(so_far)

    start = F.struct(F.col("_known_at").alias("at"), nothing.alias("places"))
    places = F.aggregate("_copies", start, go_on, lambda end: end["places"]).alias("_places")
    marked = rows.join(copied.select(*identity, places), identity, "left")
    return marked.withColumn("_kept", F.array_contains("_places", place)).drop("_places")


def _newer() -> str:
    """The predicate (SQL that both engines know) for a change ``s`` that comes after ``t`` in the source's log."""
    first = f"coalesce(t._generation, {FIRST_GENERATION})"
    lsns = "s._commit_lsn > t._commit_lsn OR (s._commit_lsn = t._commit_lsn AND s._lsn > t._lsn)"
    return f"s._generation > {first} OR (s._generation = {first} AND ({lsns}))"


def _apply(newest: Rows, settings: "Settings", contract: "Contract", table: str, record: dict[str, Any]) -> None:
    """Keep the newest change of each row (SCD1); a delete stays as a row marked ``_deleted``."""
    lake.merge(
        newest,
        settings,
        table,
        on=" AND ".join(f"t.{name} = s.{name}" for name in contract.unique_id),
        newer=_newer(),
        txn=ledger.txn(table, record),
        record=record,
    )
    ledger.committed(settings, table, record)
