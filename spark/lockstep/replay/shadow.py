"""Compute the shadow: what the code that runs now makes of the interval, in tables that nobody else reads.

Every shadow is one commit. A shadow that this code has written is not computed again, so a stage that died goes on where it was.
"""

import time
from datetime import UTC
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.rollup import bounded
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, shadow_of
from lockstep.definition.view import BEGINNING, Interval
from lockstep.replay.plan import Plan, Target
from lockstep.replay.shadow_streams import shadow_bronze, shadow_silver
from lockstep.replay.stages import Shadowed, ShadowedView
from lockstep.replay.tables import newest_entry, newest_version, shadow_result, silver_with_shadow, write_shadow
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


def build(spark: "SparkSession", settings: "Settings", plan: Plan, replay: str) -> Shadowed:
    """Compute every shadow of the plan, upstream first.

    Raises:
        DataLoss: rows that bronze has lost are gone from Kafka too.
    """
    began = time.monotonic()
    bronze, silver, gold = {}, {}, {}
    for part in plan.parts:
        if "bronze" in plan.layers:
            bronze[part.stream] = shadow_bronze(spark, settings, part, replay)
        if plan.silver_part(part.stream):
            silver[part.stream] = shadow_silver(spark, settings, plan, part, replay)
    for target in plan.targets:
        gold[target.view] = _shadow_view(spark, settings, plan, target, replay)
    seconds = round(time.monotonic() - began, 1)
    return Shadowed(bronze=bronze, silver=silver, gold=gold, code_version=code_version(), seconds=seconds)


def _shadow_view(spark: "SparkSession", settings: "Settings", plan: Plan, target: Target, replay: str) -> ShadowedView:
    view = VIEWS[target.view]
    table = shadow_of(gold_of(view), replay)
    if known := shadow_result(settings, table, ShadowedView):
        return known
    version = newest_version(settings, gold_of(view))
    gold = newest_entry(settings, gold_of(view))
    span = _span(spark, settings, plan, target, replay, gold)
    if span is None:
        rows = lake.read(spark, settings, gold_of(view)).where("false")
    else:
        silver = silver_with_shadow(spark, settings, plan, replay, view, gold)
        rows = result(view.with_late() if plan.late else view, silver, *span)
    shadow = ShadowedView(span=span, version=version, ranges=gold.ranges)
    write_shadow(spark, settings, table, rows, shadow)
    return shadow


def _span(
    spark: "SparkSession", settings: "Settings", plan: Plan, target: Target, replay: str, gold: ledger.Entry
) -> Interval | None:
    """The rows of the view to compute again: those asked for, and all that any row can show in which differs in silver now."""
    view = VIEWS[target.view]
    spans = [target.span] if target.span else []
    for stream, event_time in view.times.items():
        rows = _rows_that_differ(spark, settings, plan, target, replay, stream)
        if rows is not None and (extent := _extent(view, rows, event_time or "_arrival")):
            spans.append(extent)
    if not spans:
        return None
    if view.upserts:
        # It is written as a whole, as far as it goes.
        return BEGINNING, bounded(view, gold, BEGINNING, BEGINNING)[1]
    low, high = bounded(view, gold, min(s[0] for s in spans), max(s[1] for s in spans))
    return (low, high) if low < high else None


def _rows_that_differ(
    spark: "SparkSession", settings: "Settings", plan: Plan, target: Target, replay: str, stream: str
) -> "DataFrame | None":
    """The rows of a stream around which the view must be computed again; None where its span follows from the request.

    Where the request has a span: the rows that only silver or only its shadow has. Else: all rows that are read.
    """
    part = plan.part(stream)
    if part is None:
        return None
    log = Tables.of(CONTRACTS[stream]).log
    old = lake.read(spark, settings, log).where(part.where)
    if plan.silver_part(stream) is None:
        return old if target.span is None else None
    new = lake.read(spark, settings, shadow_of(log, replay))
    if target.span is None:
        return old.unionByName(new)
    return old.exceptAll(new.select(*old.columns)).unionByName(new.exceptAll(old.select(*new.columns)))


def _extent(view: View, rows: "DataFrame", event_time: str) -> Interval | None:
    """The times of all rows of the view that these rows can show in."""
    times = rows.agg(F.min(F.expr(event_time)).alias("first"), F.max(F.expr(event_time)).alias("last")).collect()[0]
    if times["first"] is None:
        return None
    return view.touched_by(times["first"].replace(tzinfo=UTC), times["last"].replace(tzinfo=UTC))
