"""A replay, stage by stage. Every stage can be killed and run again: it finds what is done, and goes on.

``planned → shadowed → compared → approved → promoted``, then perhaps ``undone``; or ``discarded`` before it is promoted.
"""

import hashlib
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.control import intervals
from lockstep.control.leases import lease
from lockstep.definition.tables import shadow_of
from lockstep.failpoints import failpoint
from lockstep.quality.gate import failures
from lockstep.replay import diff as differences
from lockstep.replay import promote as promotion
from lockstep.replay import record, shadow
from lockstep.replay import undo as reversal
from lockstep.replay.missing import bring_in
from lockstep.replay.plan import Plan
from lockstep.replay.plan import plan as resolve
from lockstep.replay.record import Replay, find
from lockstep.replay.request import Refused, Request
from lockstep.replay.spans import spans
from lockstep.replay.stage import has_begun
from lockstep.replay.tables import shadows, written
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

ID = re.compile(r"[a-z0-9][a-z0-9-]{3,39}")


def identify(request: Request, seed: str = "") -> str:
    """The id of a new replay: the same for the same seed (such as the run of a DAG), else by the clock."""
    seed = seed or f"{time.time_ns()}"
    return hashlib.sha256(f"{seed}\n{request.model_dump_json()}".encode()).hexdigest()[:12]


def open_(spark: "SparkSession", settings: "Settings", request: Request, by: str, run_id: str, replay: str) -> Replay:
    """Plan a replay, and hold its intervals. One that is there already is returned as it is.

    What Kafka has of the interval and bronze does not have yet is brought in first, by the way that all rows come in.

    Raises:
        Refused: there is nothing to replay, or offsets or versions are out of range.
        IntervalHeld: another replay, or a backfill, is at work on a part of it.
    """
    if not ID.fullmatch(replay):
        raise Refused("The id of a replay is 4 to 40 small letters, digits and hyphens.")
    with lease(settings, f"replay.{replay}", run_id):
        if known := record.read(settings, replay):
            return known
        plan = resolve(settings, request)
        intervals.claim(settings, replay, spans(plan))
        try:
            if any(part.missing for part in plan.parts):
                bring_in(spark, settings, plan, run_id)
                plan = resolve(settings, request)
            if not plan.parts and not plan.targets:
                raise Refused("There is nothing to replay: no table has anything of what was asked for.")
            plan = plan.model_copy(update={"seconds": _estimate(settings, plan)})
            detail = plan.model_dump(mode="json")
            record.write(spark, settings, replay, "planned", run_id, by, request, detail)
        except BaseException:
            intervals.release(settings, replay)
            raise
        return find(settings, replay)


def compute(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> Mapping[str, Any]:
    """Compute the shadow with the code that runs now, where that is not done yet; its record is returned."""
    with lease(settings, f"replay.{replay}", run_id):
        found = _open(settings, replay)
        done = found.stages.get("shadowed")
        if done and (done["code_version"] == code_version() or has_begun(settings, found)):
            return done
        made = shadow.build(spark, settings, found.plan, replay)
        intervals.claim(
            settings, replay, {f"gold.{v}": differences.span_of(g) for v, g in made["gold"].items() if g["span"]}
        )
        record.write(spark, settings, replay, "shadowed", run_id, found.by, found.request, made)
        return made


def compare(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> Mapping[str, Any]:
    """Compare the shadow with what it would replace; the diff is returned. A dry run ends here, and leaves nothing behind.

    Raises:
        Refused: there is no shadow yet.
    """
    with lease(settings, f"replay.{replay}", run_id):
        found = find(settings, replay)
        if not found.has("compared", after="shadowed"):
            _needs(found, "shadowed", "shadow")
            tables = differences.diff(spark, settings, found.plan, replay, found.stages["shadowed"])
            changed, windows = differences.changes(tables)
            detail = {
                "tables": tables,
                "windows": windows,
                "changed": changed,
                "checks": _check(spark, settings, found),
            }
            record.write(spark, settings, replay, "compared", run_id, found.by, found.request, detail)
        if found.request.dry_run and found.is_open:
            _discard(spark, settings, found, run_id, found.by, "a dry run")
        return find(settings, replay).stages["compared"]


def approve(spark: "SparkSession", settings: "Settings", replay: str, run_id: str, by: str) -> None:
    """Approve the promotion, as the person ``by``, or as the request's rule (``by`` is "rule").

    Raises:
        Refused: the rule does not hold, or the diff is missing.
    """
    with lease(settings, f"replay.{replay}", run_id):
        found = _open(settings, replay)
        if found.has("approved", after="compared"):
            return
        _needs(found, "compared", "diff")
        if by == "rule":
            check_rule(found.request, found.stages["compared"])
        record.write(spark, settings, replay, "approved", run_id, by, found.request, {"by": by})


def check_rule(request: Request, compared: Mapping[str, Any]) -> None:
    """Hold the diff against the rule of the request. Pure.

    Raises:
        Refused: too much would change, or a suite does not hold.
    """
    changed, windows = compared["changed"], compared["windows"]
    for table, failed in compared["checks"].items():
        raise Refused(f"{table} would not be as its suite expects: {failed[0]}. Correct it, and discard this replay.")
    percent = 100 * changed / windows if windows else 0.0
    if percent > request.max_changed_percent:
        raise Refused(
            f"{changed} of {windows} windows would change ({percent:.1f} %), and the rule allows "
            f"{request.max_changed_percent:g} %. Look at the diff, then promote it by hand, or discard it."
        )
    if request.max_changed_windows is not None and changed > request.max_changed_windows:
        raise Refused(
            f"{changed} windows would change, and the rule allows {request.max_changed_windows}. "
            "Look at the diff, then promote it by hand, or discard it."
        )


def promote(spark: "SparkSession", settings: "Settings", replay: str, run_id: str) -> Mapping[str, Any]:
    """Promote what was approved; by table, the version that did it. What is promoted already stays so.

    Raises:
        Refused: it is not approved, was given up, or its shadow was computed by other code.
    """
    with lease(settings, f"replay.{replay}", run_id):
        found = find(settings, replay)
        if "promoted" in found.stages and "undone" not in found.stages:
            _let_go(spark, settings, replay)
            return found.stages["promoted"]
        found = _open(settings, replay)
        if not found.has("approved", after="compared") or not found.has("compared", after="shadowed"):
            raise Refused(f"The replay {replay} is {found.state}, not approved: it cannot be promoted yet.")
        made_by = found.stages["shadowed"]["code_version"]
        if made_by != code_version() and not has_begun(settings, found):
            raise Refused(
                f"The shadow of {replay} was computed by {made_by}, and this is {code_version()}: run it again, so that "
                "what is promoted is what was looked at."
            )
        failpoint("shadow-approved")
        detail = {"versions": promotion.promote(spark, settings, found, run_id)}
        record.write(spark, settings, replay, "promoted", run_id, found.by, found.request, detail)
        _let_go(spark, settings, replay)
        return detail


def undo(spark: "SparkSession", settings: "Settings", replay: str, run_id: str, by: str) -> Mapping[str, Any]:
    """Put back what the replay has replaced, also when its promotion died half way; done twice, it is done once.

    Raises:
        Refused: it was never promoted, is too old, or another was promoted over it.
        IntervalHeld: another replay, or a backfill, is at work on a part of it.
    """
    with lease(settings, f"replay.{replay}", run_id):
        found = find(settings, replay)
        if "undone" in found.stages:
            _let_go(spark, settings, replay)
            return found.stages["undone"]
        if not has_begun(settings, found):
            raise Refused(f"The replay {replay} is {found.state}, and was not promoted: there is nothing to undo.")
        _check_age(settings, found)
        reversal.check_newest(settings, found)
        intervals.claim(settings, replay, spans(found.plan, found.stages["shadowed"]))
        detail = reversal.undo(spark, settings, found, run_id)
        record.write(spark, settings, replay, "undone", run_id, by, found.request, detail)
        _let_go(spark, settings, replay)
        return detail


def discard(spark: "SparkSession", settings: "Settings", replay: str, run_id: str, by: str) -> None:
    """Give the replay up before it is promoted: its shadows go, and its intervals are free.

    Raises:
        Refused: a part of it is promoted: promote the rest, then undo it.
    """
    with lease(settings, f"replay.{replay}", run_id):
        found = find(settings, replay)
        if found.is_open:
            if has_begun(settings, found):
                raise Refused(f"The replay {replay} is half promoted: promote it again, or undo it.")
            _discard(spark, settings, found, run_id, by, "given up")
        else:
            _let_go(spark, settings, replay)


def _discard(spark: "SparkSession", settings: "Settings", found: Replay, run_id: str, by: str, why: str) -> None:
    record.write(spark, settings, found.id, "discarded", run_id, by, found.request, {"why": why})
    _let_go(spark, settings, found.id)


def _check(spark: "SparkSession", settings: "Settings", found: Replay) -> dict[str, list[str]]:
    """By table, what its suite says against the shadow; only those that it says anything against."""
    shadowed = {table: shadow_of(table, found.id) for table in written(found.plan)}
    checks = {
        table: failures(settings, table, lake.read(spark, settings, shadow))
        for table, shadow in shadowed.items()
        if not table.startswith("bronze.")
    }
    return {table: failed for table, failed in checks.items() if failed}


def _open(settings: "Settings", replay: str) -> Replay:
    found = find(settings, replay)
    if not found.is_open:
        raise Refused(f"The replay {replay} is {found.state}: it cannot go on. Start another.")
    return found


def _needs(found: Replay, stage: str, command: str) -> None:
    if stage not in found.stages:
        raise Refused(f"The replay {found.id} has no {command} yet: run it first.")


def _check_age(settings: "Settings", found: Replay) -> None:
    hours = (time.time() * 1000 - found.opened_at) / 3_600_000
    if hours > settings.retain_hours:
        raise Refused(
            f"The replay {found.id} was planned {hours:.0f} hours ago, and the files of old versions are kept for "
            f"{settings.retain_hours} (LOCKSTEP_RETAIN_HOURS): what to put back may be gone. Replay the interval again instead."
        )


def tidy(spark: "SparkSession", settings: "Settings") -> list[str]:
    """Remove the shadows that replays have left behind which died right after their end; their names are returned."""
    kept = {table for found in record.replays(settings) if found.is_open for table in shadows(settings, found.id)}
    left = [table for table in lake.tables(settings) if table.startswith("shadow.") and table not in kept]
    for table in left:
        lake.drop(spark, settings, table)
    return left


def _let_go(spark: "SparkSession", settings: "Settings", replay: str) -> None:
    """Free its intervals, and remove its shadows."""
    intervals.release(settings, replay)
    for table in shadows(settings, replay):
        lake.drop(spark, settings, table)


def _estimate(settings: "Settings", plan: Plan) -> float | None:
    """Seconds for the shadow, by the rows a second of the newest one that took the same layers."""
    for earlier in record.replays(settings):
        if "shadowed" in earlier.stages and earlier.plan.layers == plan.layers and earlier.plan.rows:
            seconds: float = earlier.stages["shadowed"]["seconds"]
            return round(max(seconds, seconds * plan.rows / earlier.plan.rows), 1)
    return None
