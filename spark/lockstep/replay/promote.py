"""Promote a shadow: one commit a table, upstream first, then one switch of the published manifest.

The leases of all tables are held from the first to the last.
"""

from datetime import UTC
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.rollup import bounded, covered, summary
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.failpoints import failpoint
from lockstep.ledger.ranges import Range, size
from lockstep.refine.silver import QUARANTINE, QUARANTINE_PROPERTIES
from lockstep.replay.diff import span_of
from lockstep.replay.plan import Part, Span
from lockstep.replay.record import Replay
from lockstep.replay.stage import Stage, of_stream, since
from lockstep.replay.tables import current, part_of, written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


def promote(spark: "SparkSession", settings: "Settings", replay: Replay, run_id: str) -> dict[str, int]:
    """Put the shadow in the place of the interval's rows; what arrived since it was computed is caught up.

    Returns:
        By table, the version of the replay's commit.
    """
    stage = Stage(spark, settings, replay, "promote", run_id)
    plan, made = replay.plan, replay.stages["shadowed"]
    with stage.over(written(plan)):
        for part in plan.parts:
            if holes := made["holes"].get(part.stream, {}).get("ranges"):
                _bronze(stage, part, [Range(**r) for r in holes])
        for part in plan.parts:
            if part_of(plan, part.stream):
                _silver(stage, part)
        for target in plan.targets:
            _gold(stage, VIEWS[target.view])
        failpoint("shadow-promoted")
        return stage.publish()


def _bronze(stage: Stage, part: Part, holes: list[Range]) -> None:
    table = Tables.of(CONTRACTS[part.stream]).bronze
    if not stage.has(table):
        stage.bronze(table, _shadow(stage, table), holes)


def _silver(stage: Stage, part: Part) -> None:
    tables = Tables.of(CONTRACTS[part.stream])
    if stage.has(tables.log):
        return
    bad = _shadow(stage, tables.quarantine)
    if not lake.exists(stage.settings, tables.quarantine) and not bad.isEmpty():
        lake.create(stage.spark, stage.settings, tables.quarantine, QUARANTINE, properties=QUARANTINE_PROPERTIES)
    delta = stage.replay.stages["shadowed"]["silver"][part.stream]["delta"]
    stage.silver(part, _shadow(stage, tables.log), bad, delta)


def _gold(stage: Stage, view: View) -> None:
    table, shadow = gold_of(view), stage.replay.stages["shadowed"]["gold"][view.name]
    if shadow["span"] is None or stage.has(table):
        return
    rows, span = _caught_up(stage, view, _shadow(stage, table), span_of(shadow), current(stage.settings, table))
    stage.gold(view, rows, span)


def _shadow(stage: Stage, table: str) -> "DataFrame":
    return stage.read(shadow_of(table, stage.replay.id))


def _caught_up(stage: Stage, view: View, rows: "DataFrame", span: Span, done: ledger.Entry) -> "tuple[DataFrame, Span]":
    """The shadow's rows at gold's position of now: what rows touch that gold has taken since is computed again."""
    plan = stage.replay.plan
    new = since(done, [Range(**r) for r in stage.replay.stages["shadowed"]["gold"][view.name]["ranges"]])
    if not size(new):
        return rows, span
    silver = {stream: covered(stage.spark, stage.settings, stream, done) for stream in view.streams}
    counting = view.with_late() if plan.late else view
    if view.keeps_until:
        # Its state may reach anywhere, and it may be final further on than it was.
        asked = next((target.high for target in plan.targets if target.view == view.name), None)
        wide = bounded(view, done, span[0], max(span[1], asked or span[1]))
        return result(counting, silver, *wide), wide
    found = summary(view, {stream: silver[stream].where(of_stream(new, stream)) for stream in view.streams})
    if found["first"] is None:
        return rows, span
    low, high = (moment.replace(tzinfo=UTC) for moment in view.touched_by(found["first"], found["last"]))
    low, high = max(low, span[0]), min(high, span[1])
    if low >= high:
        return rows, span
    return rows.where(f"NOT ({view.interval(low, high)})").unionByName(result(counting, silver, low, high)), span
