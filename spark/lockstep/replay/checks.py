"""What must hold before a replay goes on to its next stage. Each check refuses with a sentence that says what to do."""

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.control import erased
from lockstep.definition.tables import shadow_of
from lockstep.quality.gate import failures
from lockstep.replay.commits import Action, committed_tables, is_partly_promoted, promoted_over
from lockstep.replay.record import Replay
from lockstep.replay.request import ReplayRefused, Request
from lockstep.replay.stages import Compared, Shadowed, Stage
from lockstep.replay.tables import tables_written
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

# An id is a part of the names of tables.
ID = re.compile(r"[a-z0-9][a-z0-9-]{3,39}")


def check_id(replay: str) -> None:
    """Refuse an id that cannot be a part of a table's name."""
    if not ID.fullmatch(replay):
        raise ReplayRefused("The id of a replay is 4 to 40 small letters, digits and hyphens.")


def check_open(replay: Replay) -> None:
    """Refuse a replay that has ended."""
    if not replay.is_open:
        raise ReplayRefused(f"The replay {replay.id} is {replay.state}: it cannot go on. Start another.")


def require_shadow(replay: Replay) -> Shadowed:
    """The result of the shadow stage; refuses a replay that has none."""
    if replay.shadowed is None:
        raise ReplayRefused(f"The replay {replay.id} has no shadow yet: run it first.")
    return replay.shadowed


def require_diff(replay: Replay) -> Compared:
    """The result of the diff; refuses a replay that has none."""
    if replay.compared is None:
        raise ReplayRefused(f"The replay {replay.id} has no diff yet: run it first.")
    return replay.compared


def check_rule(request: Request, compared: Compared) -> None:
    """Refuse a diff that the rule of the request does not allow, or with which a suite fails. Pure."""
    changed, windows = compared.changed, compared.windows
    for table, failed in compared.checks.items():
        raise ReplayRefused(
            f"{table} would not meet its suite: {failed[0]}. Correct the definition, and discard this replay."
        )
    percent = 100 * changed / windows if windows else 0.0
    if percent > request.max_changed_percent:
        raise ReplayRefused(
            f"{changed} of {windows} windows would change ({percent:.1f} %), and the rule allows "
            f"{request.max_changed_percent:g} %. Look at the diff, then promote it by hand, or discard it."
        )
    if request.max_changed_windows is not None and changed > request.max_changed_windows:
        raise ReplayRefused(
            f"{changed} windows would change, and the rule allows {request.max_changed_windows}. "
            "Look at the diff, then promote it by hand, or discard it."
        )


def check_promotable(settings: "Settings", replay: Replay) -> Shadowed:
    """The shadow to promote; refuses one that is not approved, has changed since, or was computed by other code."""
    check_open(replay)
    is_approved = replay.has(Stage.APPROVED, after=Stage.COMPARED) and replay.has(Stage.COMPARED, after=Stage.SHADOWED)
    if not is_approved:
        raise ReplayRefused(f"The replay {replay.id} is {replay.state}, not approved: it cannot be promoted yet.")
    shadowed = require_shadow(replay)
    if shadowed.code_version != code_version() and not is_partly_promoted(settings, replay):
        raise ReplayRefused(
            f"The shadow of {replay.id} was computed by {shadowed.code_version}, and this is {code_version()}: run it again, "
            "so that what is promoted is what was looked at."
        )
    return shadowed


def check_undoable(settings: "Settings", replay: Replay) -> None:
    """Refuse to undo a replay that was never promoted, is too old, or that another was promoted over."""
    # First: after this time, the logs may not have its commits any more.
    hours = (time.time() * 1000 - replay.opened_at) / 3_600_000
    if hours > settings.retain_hours:
        raise ReplayRefused(
            f"The replay {replay.id} was planned {hours:.0f} hours ago, and the files of old versions are kept for "
            f"{settings.retain_hours} (LOCKSTEP_RETAIN_HOURS): what to put back may be gone. "
            "Replay the interval again instead."
        )
    for table, version in (replay.promoted.versions if replay.promoted else {}).items():
        if version <= erased.first_version(settings, table):
            raise ReplayRefused(
                f"Rows of {table} were erased since the replay {replay.id} was promoted, and its versions of before are gone: "
                "nothing can be put back from them. Replay the interval again instead."
            )
    if not is_partly_promoted(settings, replay):
        raise ReplayRefused(
            f"The replay {replay.id} is {replay.state}, and was not promoted: there is nothing to undo."
        )
    for table, promotion in committed_tables(settings, replay, Action.PROMOTE).items():
        for later in promoted_over(settings, table, promotion):
            if promotion.overlaps(later):
                raise ReplayRefused(
                    f"{table}: the replay {later.replay} was promoted over {replay.id} since. Undo {later.replay} first."
                )


def failed_suites(spark: "SparkSession", settings: "Settings", replay: Replay) -> Mapping[str, tuple[str, ...]]:
    """By table, the expectations that its shadow does not meet; tables whose suite holds are left out. Bronze has no suite."""
    tables = (table for table in tables_written(replay.plan) if not table.startswith("bronze."))
    failed = {
        table: tuple(failures(settings, table, lake.read(spark, settings, shadow_of(table, replay.id))))
        for table in tables
    }
    return {table: expectations for table, expectations in failed.items() if expectations}
