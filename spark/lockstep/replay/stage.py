"""A stage of a replay that writes: its commits, one a table, each the next entry of that table's ledger.

Each takes no offsets, and names the replay and the stage: so a run that died finds what it had done, and what to put back is the
version before that commit.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lockstep import lake, ledger
from lockstep.batch.rollup import summary, written_as
from lockstep.contracts import CONTRACTS
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.lake import Txn
from lockstep.ledger.heads import advance
from lockstep.ledger.ranges import Range, to_where
from lockstep.refine.silver import newest
from lockstep.replay.plan import Part, Span
from lockstep.replay.record import Replay
from lockstep.replay.tables import below, current, own, part_of, still, version, written
from lockstep.serving import manifest, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.lake import Commit
    from lockstep.settings import Settings

Name = Literal["promote", "undo"]
_VERSIONS: dict[Name, int] = {"promote": 1, "undo": 2}


def commits(settings: "Settings", replay: Replay, stage: Name) -> "dict[str, Commit]":
    """By table, upstream first, what the stage has committed."""
    found = {t: own(settings, t, replay.id, replay.opened_at).get(stage) for t in written(replay.plan)}
    return {table: commit for table, commit in found.items() if commit}


def has_begun(settings: "Settings", replay: Replay) -> bool:
    """Whether any table has been promoted, although the record may not know it yet."""
    return bool(commits(settings, replay, "promote"))


@dataclass(frozen=True)
class Stage:
    """Who commits, and for which stage of which replay."""

    spark: "SparkSession"
    settings: "Settings"
    replay: Replay
    name: Name
    run_id: str

    @contextmanager
    def over(self, tables: list[str]) -> Iterator[None]:
        """Hold the leases of all the tables, and keep readers at what they see until all are done."""
        with ExitStack() as held:
            for table in tables:
                held.enter_context(lease(self.settings, table, self.run_id))
            # One table alone is never seen half.
            if len(tables) > 1:
                versions = {table: version(self.settings, table) for table in tables}
                manifest.hold(self.spark, self.settings, self.replay.id, versions)
                merged.follow(self.spark, self.settings, versions)
            yield

    def publish(self) -> dict[str, int]:
        """Switch the readers over; by table, the version of the stage's commit."""
        versions = {t: commit.version for t, commit in commits(self.settings, self.replay, self.name).items()}
        manifest.publish(self.spark, self.settings, self.replay.id, versions)
        merged.follow(self.spark, self.settings, versions)
        return versions

    def read(self, table: str, at: int | None = None) -> "DataFrame":
        """A table's rows, now or as of a version."""
        return lake.read(self.spark, self.settings, table, at)

    def has(self, table: str) -> bool:
        """Whether the table was done, by this run or one that died."""
        return self.name in self.made(table)

    def made(self, table: str) -> "dict[str, Commit]":
        """The replay's commits to the table, by stage."""
        return own(self.settings, table, self.replay.id, self.replay.opened_at)

    def bronze(self, table: str, rows: "DataFrame", holes: list[Range]) -> None:
        """Put the rows into the holes; undone, whatever is there goes."""
        replayed = [r.as_dict() for r in holes]
        record = self._record("ingest", current(self.settings, table), counts={"rows": 0}, rows=0, replayed=replayed)
        txn = ledger.txn(table, record)
        if self.name == "promote":
            lake.append(rows, self.settings, table, txn, record)
        else:
            lake.replace(rows, self.settings, table, to_where(holes), txn, record)
        entry = ledger.committed(self.settings, table, record)
        with control(self.settings) as connection:
            advance(connection, table, entry.version, entry.seq, list(entry.ranges))

    def silver(self, part: Part, rows: "DataFrame", bad: "DataFrame", delta: Mapping[str, int]) -> None:
        """Quarantine first, then the current rows of a change stream, and last the log, whose ledger says that it is done."""
        tables = Tables.of(CONTRACTS[part.stream])
        touched = delta["quarantined"] or not bad.isEmpty()
        if touched and lake.exists(self.settings, tables.quarantine) and not self.has(tables.quarantine):
            lake.replace(bad, self.settings, tables.quarantine, part.where, *self._beside(tables.quarantine))
        if tables.current and not self.has(tables.current):
            log = self.read(tables.log).where(f"NOT {part.where}").unionByName(rows)
            lake.replace(
                newest(log, CONTRACTS[part.stream]),
                self.settings,
                tables.current,
                "true",
                *self._beside(tables.current),
            )
        replayed = [r.as_dict() for r in part.ranges]
        record = self._record("refine", current(self.settings, tables.log), counts=dict(delta), replayed=replayed)
        lake.replace(rows, self.settings, tables.log, part.where, ledger.txn(tables.log, record), record)
        ledger.committed(self.settings, tables.log, record)

    def gold(self, view: View, rows: "DataFrame", span: Span) -> None:
        """Put the rows of a span in the place of the view's, and its sums right."""
        table = gold_of(view)
        done = current(self.settings, table)
        sources = {log: version(self.settings, log) for log in (Tables.of(CONTRACTS[s]).log for s in view.streams)}
        as_whom = written_as(view, span)
        if self.name == "promote" and self.replay.plan.late:
            # Live still follows the policy, so that these windows differ for a known reason.
            as_whom["definition"] = f"with late rows, by {self.replay.id}"
        if self.name == "undo":
            # Whose rows they are now is told by what wrote them before: not by today's definition, at any rate.
            as_whom["definition"] = f"before {self.replay.id}"
        record = self._record("rollup", done, counts=self._recounted(view, done), sources=sources, **as_whom)
        lake.replace(rows, self.settings, table, view.interval(*span), ledger.txn(table, record), record)
        ledger.committed(self.settings, table, record)

    def _recounted(self, view: View, done: ledger.Entry) -> dict[str, int]:
        """By how much the view's sums change, because silver's rows of the interval are others now."""
        plan, tables = self.replay.plan, self.replay.stages["compared"]["tables"]
        logs = [tables.get(Tables.of(CONTRACTS[s]).log) for s in view.streams if part_of(plan, s)]
        if all(log is None or log["windows"] == log["equal"] for log in logs):
            return {}
        changed: dict[str, dict[str, DataFrame]] = {"old": {}, "new": {}}
        for stream in view.streams:
            part, contract = part_of(plan, stream), CONTRACTS[stream]
            table = Tables.of(contract).log
            made = self.made(table).get(self.name) if part else None
            for side, at in (("old", -1), ("new", 0)):
                rows = self.read(table, made.version + at if made else None)
                here = f"{part.where} AND {below(done.ranges, contract.topic)}" if part and made else "false"
                changed[side][stream] = rows.where(here)
        old, new = (summary(view, changed[side])["counts"] for side in ("old", "new"))
        return {name: new[name] - old[name] for name in new}

    def _record(self, writer: str, before: ledger.Entry, **more: Any) -> dict[str, Any]:
        """The next entry of the table's ledger, by its own writer: so a dead run's write cannot come in under its number."""
        names = {"replay": self.replay.id, "stage": self.name}
        until = {"until": before.until} if before.until else {}
        return ledger.record(writer, before, self.run_id, still(before), mixed=True, **names, **until, **more)

    def _beside(self, table: str) -> tuple[Txn, dict[str, Any]]:
        """Transaction and record for a table that has no ledger of its own."""
        record = {"writer": "replay", "replay": self.replay.id, "stage": self.name, "run_id": self.run_id}
        return Txn(f"replay:{table}:{self.replay.id}", _VERSIONS[self.name]), record


def since(done: ledger.Entry, before: list[Range]) -> list[Range]:
    """What gold has taken since it stood at other ranges."""
    then = {(r.topic, r.partition): r.end for r in before}
    return [Range(r.topic, r.topic_id, r.partition, then.get((r.topic, r.partition), 0), r.end) for r in done.ranges]


def of_stream(ranges: list[Range], stream: str) -> str:
    """A SQL predicate for the rows of a stream's silver in the ranges."""
    return to_where([r for r in ranges if r.topic == CONTRACTS[stream].topic], "_partition", "_offset")
