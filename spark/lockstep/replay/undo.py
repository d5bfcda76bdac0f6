"""Undo a promotion: put back the rows of its interval, one commit a table, as they were in the version before it.

The leases of all tables are held from the first commit to the last.
"""

from functools import singledispatch
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition import View, Windowed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import Interval
from lockstep.ledger.ranges import Range, to_where, where_in
from lockstep.replay.commits import Action, ReplayCommit, committed_tables
from lockstep.replay.plan import Part
from lockstep.replay.record import Replay
from lockstep.replay.stages import Undone
from lockstep.replay.tables import newest_entry, ranges_since
from lockstep.replay.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


def undo(spark: "SparkSession", settings: "Settings", replay: Replay, run_id: str, by: str) -> Undone:
    """Put back the rows of the interval. What was written to other intervals since the promotion stays.

    A window that new rows have reached since the promotion, or that anybody has changed, stays as it is now: the version before
    lacks these rows. Of a keyed view that holds for each key.
    """
    writer = Writer(spark, settings, replay, Action.UNDO, run_id)
    promotions = committed_tables(settings, replay, Action.PROMOTE)
    kept: dict[str, int] = {}
    with writer.holding(list(promotions)):
        for part in replay.plan.parts:
            tables = Tables.of(CONTRACTS[part.stream])
            if (commit := promotions.get(tables.bronze)) and not writer.is_written(tables.bronze):
                _undo_bronze(writer, tables.bronze, commit)
        for part in replay.plan.parts:
            tables = Tables.of(CONTRACTS[part.stream])
            if (commit := promotions.get(tables.log)) and not writer.is_written(tables.log):
                _undo_silver(writer, tables, part, commit)
        for target in replay.plan.targets:
            view = VIEWS[target.view]
            commit = promotions.get(gold_of(view))
            if commit and commit.span and not writer.is_written(gold_of(view)):
                kept[view.name] = _undo_gold(writer, view, commit, commit.span)
        return Undone(versions=writer.publish(), kept=kept, by=by)


def _undo_bronze(writer: Writer, table: str, promotion: ReplayCommit) -> None:
    ranges = list(promotion.replayed)
    before = writer.read(table, promotion.version - 1).where(to_where(ranges))
    writer.write_bronze(table, before, ranges)


def _undo_silver(writer: Writer, tables: Tables, part: Part, promotion: ReplayCommit) -> None:
    before = writer.read(tables.log, promotion.version - 1)
    bad = before.where("false")
    if lake.exists(writer.settings, tables.quarantine):
        commit = writer.commits(tables.quarantine).get(Action.PROMOTE)
        bad = writer.read(tables.quarantine, commit.version - 1 if commit else None).where(part.where)
    delta = {outcome: -count for outcome, count in promotion.counts.items()}
    writer.write_silver(part, before.where(part.where), bad, delta)


def _undo_gold(writer: Writer, view: View, promotion: ReplayCommit, span: Interval) -> int:
    """Returns how many windows, or keys of a keyed view, stay as they are now."""
    table = gold_of(view)
    entry = newest_entry(writer.settings, table)
    versions = (promotion.version - 1, promotion.version, None)
    before, promoted, now = (writer.read(table, version).where(view.interval(*span)) for version in versions)
    new = ranges_since(entry, promotion.ranges)
    kept = _changed_since(view, writer, now, promoted, new).persist()
    try:
        rows = before
        if count := kept.count():
            keys = kept.columns
            rows = before.join(kept, keys, "left_anti").unionByName(now.join(kept, keys, "left_semi"))
        writer.write_gold(view, rows.select(*before.columns), span, entry)
        return count
    finally:
        kept.unpersist()


@singledispatch
def _changed_since(
    view: View, _writer: Writer, now: "DataFrame", promoted: "DataFrame", _new: list[Range]
) -> "DataFrame":
    """The keys that stay as they are, because they have changed since the promotion; of a windowed view the windows."""
    keys = list(view.key)
    return now.exceptAll(promoted).select(*keys).unionAll(promoted.exceptAll(now).select(*keys)).distinct()


@_changed_since.register(Windowed)
def _windows_changed_since(
    view: Windowed, writer: Writer, now: "DataFrame", promoted: "DataFrame", new: list[Range]
) -> "DataFrame":
    """The windows that rows have reached since, or that anybody has changed."""
    changed = now.exceptAll(promoted).unionAll(promoted.exceptAll(now)).select("window_start")
    contract = CONTRACTS[view.input]
    rows = writer.read(Tables.of(contract).log).where(where_in(new, contract.topic))
    return changed.unionAll(_windows_of(view, rows.where(view.on_time))).distinct()


def _windows_of(view: Windowed, rows: "DataFrame") -> "DataFrame":
    """The starts of the windows that hold the rows."""
    size, slide = (int(length.total_seconds() * 1_000_000) for length in (view.size, view.slide))
    at = f"unix_micros({view.event_time})"
    numbers = rows.selectExpr(f"({at} - {size}) div {slide} + 1 AS first", f"{at} div {slide} AS last")
    starts = numbers.where("first <= last").selectExpr("explode(sequence(first, last)) AS n")
    return starts.selectExpr(f"timestamp_micros(n * {slide}) AS window_start")
