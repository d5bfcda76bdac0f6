"""Promote a shadow: one commit a table, upstream first, then one switch of the published manifest.

The leases of all tables are held from the first commit to the last.
"""

from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.rollup import bounded, covered
from lockstep.batch.summary import summary
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.columns import QUARANTINE
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.definition.view import Interval
from lockstep.failpoints import failpoint
from lockstep.ledger.ranges import size, where_in
from lockstep.refine.silver import QUARANTINE_PROPERTIES
from lockstep.replay.commits import Action
from lockstep.replay.plan import Part, Target
from lockstep.replay.record import Replay
from lockstep.replay.stages import Shadowed, ShadowedView
from lockstep.replay.tables import newest_entry, ranges_since, tables_written
from lockstep.replay.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


def promote(
    spark: "SparkSession", settings: "Settings", replay: Replay, shadowed: Shadowed, run_id: str
) -> dict[str, int]:
    """Replace the interval's rows with those of the shadow. Rows that arrived since the shadow was computed are counted, too.

    Returns:
        By table, the version of the replay's commit.
    """
    writer = Writer(spark, settings, replay, Action.PROMOTE, run_id)
    plan = replay.plan
    with writer.holding(tables_written(plan)):
        for part in plan.parts:
            _promote_bronze(writer, part, shadowed)
        for part in plan.parts:
            if plan.silver_part(part.stream):
                _promote_silver(writer, part, shadowed)
        for target in plan.targets:
            _promote_gold(writer, target, shadowed)
        failpoint("shadow-promoted")
        return writer.publish()


def _promote_bronze(writer: Writer, part: Part, shadowed: Shadowed) -> None:
    table, shadow = Tables.of(CONTRACTS[part.stream]).bronze, shadowed.bronze.get(part.stream)
    if shadow and shadow.ranges and not writer.is_written(table):
        writer.write_bronze(table, _shadow_rows(writer, table), list(shadow.ranges))


def _promote_silver(writer: Writer, part: Part, shadowed: Shadowed) -> None:
    tables = Tables.of(CONTRACTS[part.stream])
    if writer.is_written(tables.log):
        return
    bad = _shadow_rows(writer, tables.quarantine)
    if not lake.exists(writer.settings, tables.quarantine) and not bad.isEmpty():
        lake.create(writer.spark, writer.settings, tables.quarantine, QUARANTINE, properties=QUARANTINE_PROPERTIES)
    writer.write_silver(part, _shadow_rows(writer, tables.log), bad, shadowed.silver[part.stream].delta)


def _promote_gold(writer: Writer, target: Target, shadowed: Shadowed) -> None:
    view, shadow = VIEWS[target.view], shadowed.gold[target.view]
    table = gold_of(view)
    if shadow.span is None or writer.is_written(table):
        return
    entry = newest_entry(writer.settings, table)
    rows, span = _caught_up(writer, target, shadow, shadow.span, entry)
    writer.write_gold(view, rows, span, entry)


def _shadow_rows(writer: Writer, table: str) -> "DataFrame":
    return writer.read(shadow_of(table, writer.replay.id))


def _caught_up(
    writer: Writer, target: Target, shadow: ShadowedView, span: Interval, entry: ledger.Entry
) -> "tuple[DataFrame, Interval]":
    """The shadow's rows at gold's position of now, and their span.

    What the rows touch that gold has taken since the shadow was computed is computed again.
    """
    view, late = VIEWS[target.view], writer.replay.plan.late
    rows = _shadow_rows(writer, gold_of(view))
    new = ranges_since(entry, shadow.ranges)
    if not size(new):
        return rows, span
    silver = {stream: covered(writer.spark, writer.settings, stream, entry) for stream in view.streams}
    counting = view.with_late() if late else view
    if view.keeps_until:
        # A new row may change any later row of its key, and more rows may be final than before.
        wide = bounded(view, entry, span[0], max(span[1], target.high or span[1]))
        return result(counting, silver, *wide), wide
    arrived = {stream: rows.where(where_in(new, CONTRACTS[stream].topic)) for stream, rows in silver.items()}
    touched = _touched(view, arrived)
    if touched is None:
        return rows, span
    low, high = max(touched[0], span[0]), min(touched[1], span[1])
    if low >= high:
        return rows, span
    return rows.where(f"NOT ({view.interval(low, high)})").unionByName(result(counting, silver, low, high)), span


def _touched(view: View, rows: "dict[str, DataFrame]") -> Interval | None:
    """The times of the view's rows that these rows of silver count in."""
    times = summary(view, rows)
    return view.touched_by(times.first, times.last) if times.first and times.last else None
