"""Run a replay, stage by stage. A stage that is killed can run again: it finds what is done, and goes on from there.

Every function here is one stage, and takes a lease on the replay. The stages and their results are in ``stages.py``.
"""

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lockstep.batch import rollup
from lockstep.contracts import CONTRACTS
from lockstep.control import intervals
from lockstep.control.leases import lease
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.failpoints import failpoint
from lockstep.refine import silver
from lockstep.replay import checks, record, shadow
from lockstep.replay import promote as promotion
from lockstep.replay import undo as reversal
from lockstep.replay.cleanup import release
from lockstep.replay.commits import is_partly_promoted
from lockstep.replay.diff import changed_windows, diff
from lockstep.replay.missing import ingest_missing
from lockstep.replay.plan import Plan, intervals_of
from lockstep.replay.record import Replay, find
from lockstep.replay.request import ReplayRefused, Request
from lockstep.replay.resolve import resolve
from lockstep.replay.stages import Approved, Compared, Discarded, Promoted, Shadowed, Stage, Undone
from lockstep.replay.tables import newest_entry
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# What the record names where no person has approved.
RULE = "rule"


def identify(request: Request, seed: str | None = None) -> str:
    """The id of a new replay: the same for the same seed (such as the run of a DAG), else by the clock."""
    return hashlib.sha256(f"{seed or time.time_ns()}\n{request.model_dump_json()}".encode()).hexdigest()[:12]


def open_replay(
    spark: "SparkSession", settings: "Settings", request: Request, by: str, run_id: str, replay: str
) -> Replay:
    """Plan a replay, and hold its intervals. One with this id that exists already is returned as it is.

    What Kafka has of the interval but bronze lacks is ingested first, through the normal pipeline.

    Raises:
        ReplayRefused: there is nothing to replay, or offsets or versions are out of range.
        IntervalHeld: another replay, or a backfill, holds a part of the interval.
    """
    checks.check_id(replay)
    with lease(settings, f"replay.{replay}", run_id):
        if known := record.read(settings, replay):
            return known
        plan = resolve(settings, request)
        intervals.claim(settings, replay, intervals_of(plan))
        try:
            if any(part.missing for part in plan.parts):
                ingest_missing(spark, settings, plan, run_id)
                plan = resolve(settings, request)
                intervals.claim(settings, replay, intervals_of(plan))
            if not plan.parts and not plan.targets:
                raise ReplayRefused("There is nothing to replay: no table has anything of what was asked for.")
            plan = plan.model_copy(update={"seconds": _estimate(settings, plan)})
            opened = Replay(replay, by, request, time.time_ns() // 1_000_000, plan)
            record.write(spark, settings, opened, plan, run_id)
        except BaseException:
            intervals.release(settings, replay)
            raise
        return find(settings, replay)


def compute(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> Shadowed:
    """Compute the shadow with the code that runs now, where that is not done yet.

    Raises:
        ReplayRefused: the replay has ended.
        IntervalHeld: the rows that change reach into an interval that somebody else holds.
    """
    with lease(settings, f"replay.{replay}", run_id):
        opened = find(settings, replay)
        checks.check_open(opened)
        known = opened.shadowed
        if known and (known.code_version == code_version() or is_partly_promoted(settings, opened)):
            return known
        _follow_columns(spark, settings, opened.plan, run_id)
        shadowed = shadow.build(spark, settings, opened.plan, replay)
        # The intervals of the views are exact now, and may be wider than those of the plan.
        spans = {gold_of(VIEWS[name]): view.span for name, view in shadowed.gold.items() if view.span}
        intervals.claim(settings, replay, spans)
        record.write(spark, settings, opened, shadowed, run_id)
        return shadowed


def _follow_columns(spark: "SparkSession", settings: "Settings", plan: Plan, run_id: str) -> None:
    """Add columns that contracts and views have got to the tables that the replay compares and writes."""
    for part in plan.parts:
        tables = Tables.of(CONTRACTS[part.stream])
        with lease(settings, tables.log, run_id):
            silver.follow_columns(spark, settings, CONTRACTS[part.stream], tables)
    for target in plan.targets:
        table = gold_of(VIEWS[target.view])
        with lease(settings, table, run_id):
            rollup.follow_columns(spark, settings, VIEWS[target.view], newest_entry(settings, table))


def compare(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> Compared:
    """Compare the shadow with the rows that it would replace. A dry run ends here, and its shadows are removed.

    Raises:
        ReplayRefused: there is no shadow yet.
    """
    with lease(settings, f"replay.{replay}", run_id):
        opened = find(settings, replay)
        if opened.compared and opened.has(Stage.COMPARED, after=Stage.SHADOWED):
            compared = opened.compared
        else:
            tables = diff(spark, settings, opened.plan, replay, checks.require_shadow(opened))
            changed, windows = changed_windows(tables)
            failed = checks.failed_suites(spark, settings, opened)
            compared = Compared(tables=tables, windows=windows, changed=changed, checks=failed)
            record.write(spark, settings, opened, compared, run_id)
        if opened.request.dry_run and opened.is_open:
            _discard(spark, settings, opened, run_id, Discarded(by=opened.by, reason="a dry run"))
        return compared


def approve(spark: "SparkSession", settings: "Settings", replay: str, run_id: str, by: str) -> None:
    """Approve the promotion as the person ``by``.

    Raises:
        ReplayRefused: there is no diff yet, or the replay has ended.
    """
    _approve(spark, settings, replay, run_id, by, lambda _request, _compared: None)


def approve_by_rule(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> None:
    """Approve the promotion if the rule of the request allows the diff.

    Raises:
        ReplayRefused: the rule does not hold, there is no diff yet, or the replay has ended.
    """
    _approve(spark, settings, replay, run_id, RULE, checks.check_rule)


def _approve(
    spark: "SparkSession",
    settings: "Settings",
    replay: str,
    run_id: str,
    by: str,
    check: Callable[[Request, Compared], None],
) -> None:
    with lease(settings, f"replay.{replay}", run_id):
        opened = find(settings, replay)
        checks.check_open(opened)
        if opened.has(Stage.APPROVED, after=Stage.COMPARED):
            return
        check(opened.request, checks.require_diff(opened))
        record.write(spark, settings, opened, Approved(by=by), run_id)


def promote(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> Promoted:
    """Promote what was approved. What is promoted already stays so.

    Raises:
        ReplayRefused: it is not approved, was given up, or its shadow was computed by other code.
    """
    with lease(settings, f"replay.{replay}", run_id):
        opened = find(settings, replay)
        if opened.promoted and not opened.undone:
            release(spark, settings, replay)
            return opened.promoted
        shadowed = checks.check_promotable(settings, opened)
        failpoint("shadow-approved")
        promoted = Promoted(versions=promotion.promote(spark, settings, opened, shadowed, run_id))
        record.write(spark, settings, opened, promoted, run_id)
        release(spark, settings, replay)
        return promoted


def undo(spark: "SparkSession", settings: "Settings", replay: str, run_id: str, by: str) -> Undone:
    """Put back what the replay has replaced, also after a promotion that died half way. A second undo changes nothing.

    Raises:
        ReplayRefused: it was never promoted, is too old, or another was promoted over it.
        IntervalHeld: another replay, or a backfill, holds a part of the interval.
    """
    with lease(settings, f"replay.{replay}", run_id):
        opened = find(settings, replay)
        if opened.undone:
            release(spark, settings, replay)
            return opened.undone
        checks.check_undoable(settings, opened)
        intervals.claim(settings, replay, intervals_of(opened.plan, opened.shadowed))
        undone = reversal.undo(spark, settings, opened, run_id, by)
        record.write(spark, settings, opened, undone, run_id)
        release(spark, settings, replay)
        return undone


def discard(spark: "SparkSession", settings: "Settings", replay: str, run_id: str, by: str) -> None:
    """Give the replay up before it is promoted: its shadows are removed, and its intervals are free.

    Raises:
        ReplayRefused: a part of it is promoted: promote the rest, then undo it. Or there is no such replay.
    """
    with lease(settings, f"replay.{replay}", run_id):
        if record.read(settings, replay) is None and intervals.holds(settings, replay):
            # Its process died after it had claimed its intervals, and before it was recorded.
            release(spark, settings, replay)
            return
        opened = find(settings, replay)
        if not opened.is_open:
            release(spark, settings, replay)
            return
        if is_partly_promoted(settings, opened):
            raise ReplayRefused(f"The replay {replay} is half promoted: promote it again, or undo it.")
        _discard(spark, settings, opened, run_id, Discarded(by=by, reason="given up"))


def _discard(spark: "SparkSession", settings: "Settings", replay: Replay, run_id: str, discarded: Discarded) -> None:
    record.write(spark, settings, replay, discarded, run_id)
    release(spark, settings, replay.id)


def _estimate(settings: "Settings", plan: Plan) -> float | None:
    """Seconds for the shadow, from the newest one that computed the same layers: in proportion to the rows, but never less."""
    for earlier in record.replays(settings):
        if earlier.shadowed and earlier.plan.layers == plan.layers and earlier.plan.rows:
            seconds = earlier.shadowed.seconds
            return round(max(seconds, seconds * plan.rows / earlier.plan.rows), 1)
    return None
