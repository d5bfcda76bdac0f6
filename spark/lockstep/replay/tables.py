"""The tables that a replay reads and writes: its shadows, and silver and gold around them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from lockstep import lake, ledger
from lockstep.batch.rollup import covered
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.errors import LedgerBroken
from lockstep.lake import Txn
from lockstep.ledger.ranges import Range, where_below
from lockstep.replay.plan import Plan
from lockstep.replay.stages import Model
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings

Result = TypeVar("Result", bound=Model)


def shadows_of(shadows: Iterable[str], replay: str) -> list[str]:
    """Those of the shadows that are the replay's."""
    ending = shadow_of("", replay).removeprefix("shadow.")
    return [table for table in shadows if table.endswith(ending)]


def shadow_result(settings: "Settings", table: str, model: "type[Result]") -> "Result | None":
    """What is recorded of a shadow that the code that runs now has computed; None where it must be computed."""
    record = next((c.record for c in lake.commits(settings, table) if "shadow" in c.record), None)
    is_current = record is not None and record["code_version"] == code_version()
    return model.model_validate(record["shadow"]) if record and is_current else None


def write_shadow(spark: "SparkSession", settings: "Settings", table: str, rows: "DataFrame", shadow: Model) -> None:
    """Write a shadow and what is recorded of it in one commit, in the place of one by other code."""
    lake.drop(spark, settings, table)
    record = {"writer": "replay", "code_version": code_version(), "shadow": shadow.model_dump(mode="json")}
    lake.append(rows, settings, table, Txn(f"shadow:{table}", 1), record)


def tables_written(plan: Plan) -> list[str]:
    """The tables with a ledger that the replay writes, upstream first."""
    tables: list[str] = []
    for part in plan.parts:
        of_stream = Tables.of(CONTRACTS[part.stream])
        tables += [of_stream.bronze] if "bronze" in plan.layers else []
        tables += [of_stream.log] if plan.silver_part(part.stream) else []
    return sorted(tables) + [gold_of(VIEWS[target.view]) for target in plan.targets]


def ranges_since(entry: ledger.Entry, before: Iterable[Range]) -> list[Range]:
    """The ranges that a table has taken since it stood at earlier ranges."""
    ends = {(r.topic, r.partition): r.end for r in before}
    return [Range(r.topic, r.topic_id, r.partition, ends.get((r.topic, r.partition), 0), r.end) for r in entry.ranges]


def silver_with_shadow(
    spark: "SparkSession", settings: "Settings", plan: Plan, replay: str, view: "View", gold: ledger.Entry
) -> "dict[str, DataFrame]":
    """The silver rows of the view's streams below gold's position, with the rows of the shadow in the place of theirs."""
    by_stream = {}
    for stream in view.streams:
        rows = covered(spark, settings, stream, gold)
        if part := plan.silver_part(stream):
            contract = CONTRACTS[stream]
            shadow = lake.read(spark, settings, shadow_of(Tables.of(contract).log, replay))
            below = shadow.where(where_below(gold.ranges, contract.topic))
            rows = rows.where(f"NOT {part.where}").unionByName(below)
        by_stream[stream] = rows
    return by_stream


def newest_entry(settings: "Settings", table: str) -> ledger.Entry:
    """The newest ledger entry of a table that must have one.

    Raises:
        LedgerBroken: it has none.
    """
    entry = ledger.latest(settings, table)
    if entry is None:
        raise LedgerBroken(
            f"{table}: it was planned to be replayed, but its log has no entry any more. See its _delta_log."
        )
    return entry


def newest_version(settings: "Settings", table: str) -> int:
    """The newest version of a table."""
    return next(lake.commits(settings, table)).version
