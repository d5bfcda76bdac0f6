"""The tables of a replay: its shadows, and its own commits among those of the real ones."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.batch.rollup import covered
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.errors import LedgerBroken
from lockstep.ledger.ranges import Range, size, to_where
from lockstep.replay.plan import Part, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import View
    from lockstep.lake import Commit
    from lockstep.settings import Settings


def shadows(settings: "Settings", replay: str) -> list[str]:
    """The shadows that there are."""
    ending = shadow_of("", replay).removeprefix("shadow.")
    return [t for t in lake.tables(settings) if t.startswith("shadow.") and t.endswith(ending)]


def written(plan: Plan) -> list[str]:
    """The tables with a ledger that the replay writes, upstream first."""
    found: list[str] = []
    for part in plan.parts:
        tables = Tables.of(CONTRACTS[part.stream])
        found += [tables.bronze] if "bronze" in plan.layers else []
        found += [tables.log] if part_of(plan, part.stream) else []
    return sorted(found) + [gold_of(VIEWS[target.view]) for target in plan.targets]


def part_of(plan: Plan, stream: str) -> Part | None:
    """What the replay puts into silver of this stream, if anything."""
    if "silver" not in plan.layers:
        return None
    return next((part for part in plan.parts if part.stream == stream and size(part.ranges)), None)


def below(ranges: "tuple[Range, ...] | list[Range]", topic: str) -> str:
    """A SQL predicate for all rows of silver before the ends of the ranges of a topic."""
    position = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in ranges if r.topic == topic]
    return to_where(position, "_partition", "_offset")


def still(entry: ledger.Entry) -> list[Range]:
    """An empty range for every partition: the position stays."""
    return [Range(r.topic, r.topic_id, r.partition, r.end, r.end) for r in entry.ranges]


def silver(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, view: "View", done: ledger.Entry
) -> "dict[str, DataFrame]":
    """The logs of the view's streams as an entry of gold covers them, with the shadow's rows in the place of theirs."""
    found = {}
    for stream in view.streams:
        rows = covered(spark, settings, stream, done)
        part = part_of(plan, stream)
        if part:
            contract = CONTRACTS[stream]
            shadow = lake.read(spark, settings, shadow_of(Tables.of(contract).log, replay))
            inside = shadow.where(below(done.ranges, contract.topic))
            rows = rows.where(f"NOT {part.where}").unionByName(inside)
        found[stream] = rows
    return found


def own(settings: "Settings", table: str, replay: str, since: int) -> "dict[str, Commit]":
    """The replay's commits to a table by stage (``promote``, ``undo``), however its tasks ended.

    Args:
        since: when the replay was planned (milliseconds, UTC): older commits are not looked at.
    """
    return {c.record["stage"]: c for c in _since(settings, table, since) if c.record.get("replay") == replay}


def _since(settings: "Settings", table: str, since: int) -> "Iterator[Commit]":
    for commit in lake.commits(settings, table):
        # Delta's clock and ours are one machine's or a cluster's: an hour covers what they differ by.
        if commit.timestamp and commit.timestamp < since - 3_600_000:
            return
        yield commit


def current(settings: "Settings", table: str) -> ledger.Entry:
    """The newest entry of a table that must have one.

    Raises:
        LedgerBroken: it has none.
    """
    entry = ledger.latest(settings, table)
    if entry is None:
        raise LedgerBroken(
            f"{table}: it was planned to be replayed, but its log has no entry any more. See its _delta_log."
        )
    return entry


def version(settings: "Settings", table: str) -> int:
    """The newest version of a table."""
    return next(lake.commits(settings, table)).version


def others(settings: "Settings", table: str, commit: "Commit") -> "Iterator[tuple[str, dict[str, Any]]]":
    """Other replays that were promoted to the table after a commit, and are not undone, with their records."""
    undone = set()
    for later in lake.commits(settings, table):
        if later.version <= commit.version:
            return
        name = later.record.get("replay")
        if name and later.record.get("stage") == "undo":
            undone.add(name)
        elif name and name not in undone:
            yield name, dict(later.record)
