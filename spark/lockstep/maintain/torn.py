"""End the logs of tables whose newest commits a power cut has torn, so that the next runs take their rows again.

Positions are in the commits themselves, so a log that ends earlier is a position that is earlier. What knows better is made to
agree: the other tables of a run of refine end at the same entry, a live query begins again, the archive of the ledger goes back.
Tables that have taken the rows already stay right: the same offsets are the same rows.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.checkpoints import resets
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, contract_of, live_of, written_under
from lockstep.errors import LedgerBroken
from lockstep.ledger import archive
from lockstep.ledger.integrity import missing_data
from lockstep.ledger.torn import commits_before, end_before, fill, is_filled, torn_versions
from lockstep.live.frontier import batch_final
from lockstep.live.lease import ensure_free

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from pyspark.sql import SparkSession

    from lockstep.checkpoints.resets import ResetPlan
    from lockstep.definition import View
    from lockstep.settings import Settings

# By layer, how the rows come back.
_NEXT = {
    "silver": "the next runs of refine take its rows again from bronze",
    "quarantine": "the next runs of refine take its rows again from bronze",
    "gold": "the next run of refine computes its rows again from silver",
    "ops": "the rows of these commits are lost; what the platform decides by is in the control database",
    "marts": "build it again: `lockstep dbt build --full-refresh --target prod --select {name}`",
}


@dataclass(frozen=True)
class Ended:
    """The log of a table that was ended before torn commits, or before those of the same runs.

    Args:
        version: the first one that is gone.
        put_aside: where the files are now.
        following: how the rows come back.
    """

    table: str
    version: int
    put_aside: list[str]
    following: str


def repair(spark: "SparkSession", settings: "Settings", table: str, by: str, reason: str) -> list[Ended]:
    """End the log of a table of any layer but bronze before its torn commits. If it fails, it may run again.

    Returns:
        The logs that were ended; none if no commit of the table, or of those that a run writes with it, is torn.

    Raises:
        LeaseHeld: somebody writes the table.
        LedgerBroken: what the table was before is not there as a whole. Nothing was written.
        ActionRefused: the query of a live table cannot begin again. Nothing was written.
    """
    layer, _, name = table.partition(".")
    view = VIEWS.get(name) if layer == "live" else None
    contract = contract_of(table) if layer in ("silver", "quarantine") else None
    of_run = Tables.of(contract) if contract else None
    tables = [t for t in ((of_run.quarantine, of_run.current, of_run.log) if of_run else (table,)) if t]
    tables = [t for t in tables if lake.exists(settings, t)]
    with _writer(settings, table, by) as connection:
        torn = {t: versions for t in tables if (versions := torn_versions(settings, t))}
        ends = {t: min(versions) for t, versions in torn.items()}
        if ends and of_run:
            ends = _of_one_run(settings, of_run, tables, ends)
        _ensure_whole(settings, ends)
        if view and not ends and not is_filled(settings, table):
            # A repair has died before the query began again.
            ends = {table: (lake.newest_version(settings, table) or 0) + 1}
        planned = _plan(spark, settings, view) if view and ends else None
        if table != archive.TABLE.name:
            archive.take_back(spark, settings, ends, by)
        # As long as one is torn, a repair that has died is seen to be unfinished.
        places = {
            t: end_before(connection, settings, t, [ends[t]]) for t in sorted(ends, key=lambda name: name in torn)
        }
        following = _NEXT.get(layer, "").format(name=name)
        if planned:
            following = str(resets.reset(settings, planned, reason, by))
        for t in tables:
            fill(settings, t, by, reason)
    found = [Ended(t, ends[t], put_aside, following) for t, put_aside in places.items()]
    if found and table == archive.TABLE.name:
        archive.forget_lost(spark, settings, by)
    return found


@contextmanager
def _writer(settings: "Settings", table: str, by: str) -> Iterator["Connection"]:
    """Be the only one that writes the table."""
    layer, _, name = table.partition(".")
    if layer != "live":
        with lease(settings, written_under(table) if layer != "marts" else layer, by) as connection:
            yield connection
        return
    ensure_free(settings, [name])
    with control(settings) as connection:
        yield connection


def _of_one_run(settings: "Settings", of_run: Tables, tables: list[str], torn: Mapping[str, int]) -> dict[str, int]:
    """Where the tables of a stream end, so that all have the same runs. A run writes its log last."""
    ends = dict(torn)
    for table, rows in ((of_run.current, "silver"), (of_run.quarantine, "quarantined")):
        if table and table in torn:
            newest = next(commits_before(settings, table, torn[table]), None)
            known = newest.record["seq"] if newest else 0
            log = commits_before(settings, of_run.log, ends.get(of_run.log))
            later = takewhile(lambda commit, known=known: commit.record["seq"] > known, log)  # type: ignore[misc]
            lost = [commit for commit in later if commit.record.get("counts", {}).get(rows)]
            if lost:
                ends[of_run.log] = lost[-1].version
    newest = next(commits_before(settings, of_run.log, ends.get(of_run.log)), None)
    last = newest.record["seq"] if newest else 0
    for table in tables:
        ahead = takewhile(lambda c: c.record["seq"] > last, commits_before(settings, table, ends.get(table)))
        versions = [commit.version for commit in ahead]
        if versions:
            ends[table] = versions[-1]
    _ensure_no_replay(settings, {table: end for table, end in ends.items() if torn.get(table) != end})
    return ends


def _ensure_no_replay(settings: "Settings", ends: Mapping[str, int]) -> None:
    """Refuse to go behind a replay: its rows would be taken again as they came, and not as it has corrected them."""
    for table, end in ends.items():
        for commit in takewhile(lambda c: c.version >= end, commits_before(settings, table)):  # noqa: B023
            if "replay" in commit.record:
                raise LedgerBroken(
                    f"{table}: version {commit.version} is of the replay {commit.record['replay']}, and would be gone. Restore "
                    "the torn files from a backup; `lockstep ledger verify` names them. Nothing was written."
                )


def _ensure_whole(settings: "Settings", ends: Mapping[str, int]) -> None:
    for table, end in ends.items():
        missing = next(missing_data(settings, table, end - 1), None) if end else "it has no earlier version."
        if missing:
            raise LedgerBroken(
                f"{table}: its log cannot end with version {end - 1}: {missing} Restore the torn files from a backup; `lockstep "
                "ledger verify` names them. Nothing was written."
            )


def _plan(spark: "SparkSession", settings: "Settings", view: "View") -> "ResetPlan":
    """Where the query of a live table begins again: its checkpoint is ahead of the table.

    The rows that the query does not compute again come from gold: live may have lost them.
    """
    planned = resets.plan(spark, settings, view, resets.GOLD if view.has_machines else resets.EARLIEST)
    final = batch_final(settings, view)
    if planned.since and (final is None or planned.since + view.overlap > final):
        until = f"only before {final:%F %T}" if final else "not at all"
        raise LedgerBroken(
            f"{live_of(view)}: its query would write rows from {planned.since:%F %T} UTC on, and gold is final {until}. Let the "
            "DAGs ingest and refine run, and repair it then. Nothing was written."
        )
    return planned
