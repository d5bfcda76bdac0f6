"""Write a promotion, or its undo, to the real tables: one commit a table, each the next entry of that table's ledger.

A commit takes no offsets. It names the replay and the action, so a run that died finds what it had done; and what undo puts back
is the version before that commit.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.batch.rollup import written_as
from lockstep.batch.summary import summary
from lockstep.contracts import CONTRACTS
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import Interval
from lockstep.lake import Txn
from lockstep.ledger.heads import advance
from lockstep.ledger.ranges import Range, encode, to_where, where_below
from lockstep.refine.classified import newest
from lockstep.replay.commits import Action, ReplayCommit, commits_of_replay, committed_tables
from lockstep.replay.plan import Part
from lockstep.replay.record import Replay
from lockstep.replay.tables import newest_entry, newest_version
from lockstep.serving import manifest, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

# Delta skips a commit with the same or a lower number: an undo comes after the promotion.
_TXN_VERSION = {Action.PROMOTE: 1, Action.UNDO: 2}


@dataclass(frozen=True)
class Writer:
    """Commits an action of a replay."""

    spark: "SparkSession"
    settings: "Settings"
    replay: Replay
    action: Action
    run_id: str

    @contextmanager
    def holding(self, tables: list[str]) -> Iterator[None]:
        """Hold the leases of all the tables, and keep readers at the versions of now until all are written."""
        with ExitStack() as leases:
            for table in tables:
                leases.enter_context(lease(self.settings, table, self.run_id))
            # The commit of a single table is never seen half.
            if len(tables) > 1:
                versions = {table: newest_version(self.settings, table) for table in tables}
                manifest.hold(self.spark, self.settings, self.replay.id, versions)
                merged.follow(self.spark, self.settings, versions)
            yield

    def publish(self) -> dict[str, int]:
        """Let readers go on to the new versions, all at once; by table, the version of the commit."""
        commits = committed_tables(self.settings, self.replay, self.action)
        versions = {table: commit.version for table, commit in commits.items()}
        manifest.publish(self.spark, self.settings, self.replay.id, versions)
        merged.follow(self.spark, self.settings, versions)
        return versions

    def read(self, table: str, version: int | None = None) -> "DataFrame":
        """A table's rows, now or as of a version; with the columns that the table has now."""
        if version is None:
            return lake.read(self.spark, self.settings, table)
        return lake.read_as_now(self.spark, self.settings, table, version)

    def is_written(self, table: str) -> bool:
        """Whether the table is committed, by this run or one that died."""
        return self.action in self.commits(table)

    def commits(self, table: str) -> dict[Action, ReplayCommit]:
        """The replay's commits to a table."""
        return commits_of_replay(self.settings, table, self.replay)

    def write_bronze(self, table: str, rows: "DataFrame", ranges: list[Range]) -> None:
        """Append the lost rows of the ranges; to undo that, put back the rows of the ranges as they were."""
        replayed = encode(ranges)
        record = self._entry(
            "ingest", newest_entry(self.settings, table), counts={"rows": 0}, rows=0, replayed=replayed
        )
        txn = ledger.txn(table, record)
        if self.action is Action.PROMOTE:
            lake.append(rows, self.settings, table, txn, record)
        else:
            lake.replace(rows, self.settings, table, to_where(ranges), txn, record)
        entry = ledger.committed(self.settings, table, record)
        with control(self.settings) as connection:
            advance(connection, table, entry.version, entry.seq, list(entry.ranges))

    def write_silver(self, part: Part, rows: "DataFrame", bad: "DataFrame", delta: Mapping[str, int]) -> None:
        """Write quarantine, then the current rows of a change stream, then the log: its ledger says that all three are done."""
        tables = Tables.of(CONTRACTS[part.stream])
        is_touched = delta["quarantined"] or not bad.isEmpty()
        if is_touched and lake.exists(self.settings, tables.quarantine) and not self.is_written(tables.quarantine):
            self._replace_without_ledger(tables.quarantine, bad, part.where)
        if tables.current and not self.is_written(tables.current):
            log = self.read(tables.log).where(f"NOT {part.where}").unionByName(rows)
            self._replace_without_ledger(tables.current, newest(log, CONTRACTS[part.stream].unique_id), "true")
        replayed = encode(part.ranges)
        record = self._entry("refine", newest_entry(self.settings, tables.log), counts=dict(delta), replayed=replayed)
        self._replace(tables.log, rows, part.where, record)

    def write_gold(self, view: View, rows: "DataFrame", span: Interval, entry: ledger.Entry) -> None:
        """Replace the rows of a span, and correct the view's sums.

        Args:
            entry: gold's newest entry when the rows were computed.

        Raises:
            Overtaken: gold has taken other rows since. Leases are lost without notice when PostgreSQL restarts.
        """
        table = gold_of(view)
        logs = (Tables.of(CONTRACTS[stream]).log for stream in view.streams)
        sources = {log: newest_version(self.settings, log) for log in logs}
        record = self._entry(
            "rollup", entry, counts=self._delta(view, entry), sources=sources, **self._written_as(view, span)
        )
        self._replace(table, rows, view.interval(*span), record)

    def _written_as(self, view: View, span: Interval) -> dict[str, Any]:
        """The definition that the rows follow, for reconcile."""
        written = written_as(view, span)
        if self.action is Action.UNDO:
            # They follow the definition of the version that they come from, which need not be today's.
            return written | {"definition": f"before {self.replay.id}"}
        if self.replay.plan.late:
            # Live leaves late rows out, so these windows differ for a known reason.
            return written | {"definition": f"with late rows, by {self.replay.id}"}
        return written

    def _delta(self, view: View, entry: ledger.Entry) -> dict[str, int]:
        """By how much the view's sums change, because the rows of silver have changed."""
        if not self._silver_changes(view):
            return {}
        old: dict[str, DataFrame] = {}
        new: dict[str, DataFrame] = {}
        for stream in view.streams:
            part, contract = self.replay.plan.silver_part(stream), CONTRACTS[stream]
            table = Tables.of(contract).log
            commit = self.commits(table).get(self.action) if part else None
            if part and commit:
                where = f"{part.where} AND {where_below(entry.ranges, contract.topic)}"
                old[stream] = self.read(table, commit.version - 1).where(where)
                new[stream] = self.read(table, commit.version).where(where)
            else:
                old[stream] = new[stream] = self.read(table).where("false")
        before, after = summary(view, old).counts, summary(view, new).counts
        return {name: after[name] - before[name] for name in after}

    def _silver_changes(self, view: View) -> bool:
        if self.replay.compared is None:
            return False
        logs = [Tables.of(CONTRACTS[s]).log for s in view.streams if self.replay.plan.silver_part(s)]
        diffs = [self.replay.compared.tables.get(log) for log in logs]
        return any(diff.windows != diff.equal for diff in diffs if diff)

    def _entry(self, writer: str, previous: ledger.Entry, **more: Any) -> dict[str, Any]:
        """The next entry of the table's ledger, by the table's own writer: the late write of a dead run is skipped then."""
        names = {"replay": self.replay.id, "stage": self.action.value}
        until = {"until": previous.until.isoformat()} if previous.until else {}
        position = ledger.unchanged_position(previous)
        return ledger.record(writer, previous, self.run_id, position, mixed=True, **names, **until, **more)

    def _replace(self, table: str, rows: "DataFrame", where: str, record: dict[str, Any]) -> None:
        lake.replace(rows, self.settings, table, where, ledger.txn(table, record), record)
        ledger.committed(self.settings, table, record)

    def _replace_without_ledger(self, table: str, rows: "DataFrame", where: str) -> None:
        record = {"writer": "replay", "replay": self.replay.id, "stage": self.action.value, "run_id": self.run_id}
        txn = Txn(f"replay:{table}:{self.replay.id}", _TXN_VERSION[self.action])
        lake.replace(rows, self.settings, table, where, txn, record)
