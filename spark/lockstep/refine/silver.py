"""Silver: each event once, and each source row as it is now. Rows that fail validation are quarantined with their raw bytes.

One run takes what bronze has after silver's position. It commits in an order in which a crash between two commits does no harm:
quarantine first, then a change stream's current rows (a MERGE that writes newer LSNs only), and last the table whose ledger says
that the run is done. Each of the first two pins the ranges of the run: after a crash the retry must take the same ranges, because
its commit has the same transaction id, and is skipped. The deletes of rows that a TRUNCATE has ended, or that a new snapshot does
not have, are written to the topic before the last commit: a retry writes them again, and silver finds the second ones to be
duplicates.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deltalake.exceptions import DeltaError

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.columns import FIRST_GENERATION, QUARANTINE, log_columns
from lockstep.definition.tables import Tables
from lockstep.errors import LedgerBroken
from lockstep.failpoints import failpoint
from lockstep.ledger.integrity import record_digest
from lockstep.ledger.ranges import Range, ends, size, to_where
from lockstep.refine import history, snapshots, truncates
from lockstep.refine.classified import Classified, Rows, kept_in_spark
from lockstep.refine.duplicates import arrivals, classify, oldest_of, remembered
from lockstep.refine.rows import silver_rows
from lockstep.refine.small_slice import parsed, small_slice
from lockstep.refine.source_order import check_order, with_order
from lockstep.refine.truncates import newest_truncate, with_ended
from lockstep.refine.writers import headers, writers_of
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
QUARANTINE_PROPERTIES = ledger.RETENTION | {
    "delta.dataSkippingStatsColumns": "_topic,_partition,_offset,_arrival,_reason"
}


def behind(settings: "Settings", contract: "Contract") -> bool:
    """Whether silver lacks rows that bronze has, or columns (or wider types, or texts) that the contract has.

    Only the logs are read. One that is torn counts as behind: its refine says so, and those of the others go on.
    """
    try:
        return _lacks(settings, contract)
    except (LedgerBroken, DeltaError):
        return True


def _lacks(settings: "Settings", contract: "Contract") -> bool:
    tables = Tables.of(contract)
    source, newest_entry = ledger.latest(settings, tables.bronze), ledger.latest(settings, tables.log)
    if source is None:
        return False
    if newest_entry is None or ends(newest_entry.ranges) != ends(source.ranges):
        return True
    if newest_entry.code_version == code_version():
        return False
    has_columns = lake.has_columns(settings, tables.log, log_columns(contract))
    return not (has_columns and all(lake.has_texts(settings, t) for t in (tables.log, tables.current) if t))


def _next(settings: "Settings", contract: "Contract") -> tuple[list[Range], bool]:
    """What the next run takes: what bronze has and silver does not, at most ``max_offsets_per_run`` offsets.

    And whether an earlier run has begun with these ranges.
    """
    tables = Tables.of(contract)
    previous, source = ledger.latest(settings, tables.log), ledger.latest(settings, tables.bronze)
    pinned = _pinned(settings, tables, previous.seq + 1 if previous else 1)
    return pinned or ledger.pending(settings, source, previous, settings.max_offsets_per_run), bool(pinned)


def refine(spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str) -> ledger.Entry | None:
    """Refine what bronze has and silver does not, at most ``max_offsets_per_run`` offsets.

    Returns:
        The new entry of the stream's silver ledger, whose counts add up to the rows read
        (``bronze = silver + duplicates + quarantined + markers``), or None when there was nothing new.

    Raises:
        Overtaken: another run has committed first.
        RegistryDown: a record has a schema that is not known yet, and the registry does not answer.
    """
    tables = Tables.of(contract)
    with lease(settings, tables.log, run_id) as control:
        previous, (ranges, is_retry) = ledger.latest(settings, tables.log), _next(settings, contract)
        if previous is None or previous.code_version != code_version():
            follow_columns(spark, settings, contract, tables)
            if tables.history:
                with lease(settings, lake.CATALOG, run_id):
                    history.define(spark, settings, [contract])
        if size(ranges) == 0:
            return None
        if lake.is_small(size(ranges)):
            rows = parsed(spark, settings, contract, ranges, not is_retry)
            found = small_slice(settings, contract, previous, rows)
            written = _write(spark, settings, contract, tables, previous, ranges, found, run_id)
        else:
            classified = _classified(spark, settings, contract, previous, ranges, not is_retry)
            with kept_in_spark(classified, contract.kind == "changes") as kept:
                written = _write(spark, settings, contract, tables, previous, ranges, kept, run_id)
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
    """Have silver's tables with all columns of the contract, and with its texts. The caller holds the lease of the log.

    The log comes last: by its columns it is known that all was done.

    Raises:
        ColumnsRefused: the contract has other changes of its columns.
    """
    for table in filter(None, (tables.current, tables.log)):
        lake.create(spark, settings, table, log_columns(contract), properties=ledger.RETENTION)


def _classified(
    spark: "SparkSession",
    settings: "Settings",
    contract: "Contract",
    previous: ledger.Entry | None,
    ranges: list[Range],
    ask_again: bool,
) -> "DataFrame":
    tables = Tables.of(contract)
    raw = lake.read(spark, settings, tables.bronze).where(to_where(ranges))
    arrived, earlier = arrivals(settings, tables.bronze, ranges), None
    if previous:
        oldest = arrived[0] if arrived else oldest_of(raw)
        earlier = remembered(lake.read(spark, settings, tables.log), oldest, contract)
    writers = writers_of(settings, contract, headers(raw, contract), ask_again)
    rows = silver_rows(raw, contract, previous.newest if previous else {}, writers)
    if tables.current:
        rows = with_order(rows, previous.commits if previous else {})
        rows = with_ended(rows, previous.truncated if previous else None)
    return classify(rows, earlier, contract, span=arrived[1] - arrived[0] if arrived else None)


def _write(
    spark: "SparkSession",
    settings: "Settings",
    contract: "Contract",
    tables: Tables,
    previous: ledger.Entry | None,
    ranges: list[Range],
    found: Classified,
    run_id: str,
) -> ledger.Entry:
    columns = [*log_columns(contract)]
    if tables.current and found.any("_fallen"):
        check_order(spark, settings, contract, tables, found.in_spark(spark))
    counts, before = found.counts(), previous.newest if previous else {}
    newest = {p: max(at, before.get(p, at)) for p, at in found.newest_timestamps().items()}
    unknown = found.unknown()
    _warn_of_new(contract, unknown, previous)
    more: dict[str, Any] = {"newest": {**before, **newest}, **({"unknown": unknown} if unknown else {})}
    if tables.current:
        more |= _source(spark, found, previous)
    record = ledger.record("refine", previous, run_id, ranges, counts=counts, **more)
    if counts["quarantined"]:
        lake.create(spark, settings, tables.quarantine, QUARANTINE, properties=QUARANTINE_PROPERTIES)
        _quarantine(found, settings, tables.quarantine, ranges, record)
        failpoint("quarantine-committed")
    if tables.current and counts["silver"]:
        _apply(found.newest(contract.unique_id, columns), settings, contract, tables.current, record)
        failpoint("changes-applied")
    # An environment finds them in the topic: production writes them.
    if tables.current and not settings.env and (found.any("_truncates") or found.any("_ended")):
        truncates.write_deletes(spark, settings, contract, tables.current, more["truncated"])
        failpoint("deletes-written")
    if tables.current and not settings.env and previous and found.any("_ends_snapshot"):
        snapshots.write_deletes(spark, settings, contract, tables.current, found.in_spark(spark), more["truncated"])
    lake.append(found.silver(columns), settings, tables.log, ledger.txn(tables.log, record), record)
    failpoint("silver-committed")
    return ledger.committed(settings, tables.log, record)


def _source(spark: "SparkSession", found: Classified, previous: ledger.Entry | None) -> dict[str, Any]:
    """How far the source's log has come, of a stream of changes: see :class:`lockstep.ledger.Entry`."""
    commits, truncated = (dict(previous.commits), previous.truncated) if previous else ({}, None)
    commits |= {p: max(at, commits.get(p, at)) for p, at in found.newest_commits().items()}
    return {
        "commits": commits,
        "truncated": newest_truncate(found.in_spark(spark), truncated) if found.any("_truncates") else truncated,
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
        key=contract.unique_id,
        newer=_newer(),
        txn=ledger.txn(table, record),
        record=record,
    )
    ledger.committed(settings, table, record)
