"""Keep the marts up to date: build the days that new rows of their sources touch, however old the days are."""

import logging
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lockstep.control.leases import lease
from lockstep.errors import LockstepError
from lockstep.marts import published, record
from lockstep.marts.build import Built, build, is_first
from lockstep.marts.dbt_project import MartsFailed, has_marts, sources
from lockstep.marts.progress import Box, Kind, Progress
from lockstep.marts.record import TABLE
from lockstep.marts.touched import Span, days_of, spans, touched, whole
from lockstep.quality import outcomes
from lockstep.quality.slices import Slice, pending
from lockstep.results import Outcome, TableResult
from lockstep.version import code_version

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pyspark.sql import SparkSession

    from lockstep.results import Results
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
# Another run builds some days in seconds. A task must not wait for long: its token ends.
_WAIT_SECONDS = 300


def bring_up(
    spark: "SparkSession", settings: "Settings", run_id: str, results: "Results", progress: Progress | None = None
) -> list[Span]:
    """Build the days of the marts that rows have touched since the last run, the newest first; the spans that were built.

    Rows whose newest gate has failed wait until it passes, and all marts with them.

    Args:
        results: gets a result for each span, or why the marts wait.
        progress: is told what becomes of each mart.

    Raises:
        LeaseHeld: another run does it.
        MartsFailed: some days could not be built. They wait for the next run; the others are done.
    """
    if not has_marts(settings):
        return []
    with lease(settings, "marts", run_id):
        tables = sources(spark, settings)
        if reason := _held_back(settings, tables):
            (progress or Progress()).say(f"The marts wait: {reason}.", level=logging.WARNING)
            results.add(TableResult("marts", Outcome.WAITING, detail=reason))
            return []
        waiting = _take_note(spark, settings, tables, run_id)
        if not waiting:
            # The last run may have died before readers saw what it had published.
            published.begin(spark, settings, run_id)
            results.add(TableResult("marts", Outcome.NOTHING_NEW))
        built: list[Span] = []
        failures: dict[str, MartsFailed] = {}
        # Asked only where days wait: it reads what dbt has parsed of the project.
        for span in whole(waiting) if waiting and is_first(settings) else spans(waiting):
            try:
                done = _build_days(spark, settings, span, run_id, results, progress)
            except MartsFailed as error:
                failures[days(span)] = error
                continue
            waiting -= days_of(span)
            warned = [f"{name}: {reason}" for name, reason in done.warned.items()]
            row = (*span, done.names, run_id, datetime.now(UTC), warned)
            _record(spark, settings, run_id, {"waiting": waiting}, [row])
            built.append(span)
        reasons = {of: str(error) for of, error in failures.items()}
        if reasons != record.failed(settings):
            _record(spark, settings, run_id, {"waiting": waiting, "failed": reasons}, [])
    if failures:
        lines = "\n  ".join(f"{of}: {reason}" for of, reason in reasons.items())
        raise MartsFailed(
            f"Some days could not be built. Readers keep the last good version, and they are tried again:\n  {lines}",
            {name: reason for error in failures.values() for name, reason in error.failed.items()},
            lasting=all(error.lasting for error in failures.values()),
        )
    return built


def build_days(
    spark: "SparkSession",
    settings: "Settings",
    span: Span,
    run_id: str,
    results: "Results",
    progress: Progress | None = None,
) -> list[str]:
    """Build the marts of a span; the models and tests that ran. The span gets a result, and so does each model that fails.

    Args:
        progress: is told what becomes of each mart.

    Raises:
        LeaseHeld: other runs build the marts all the time.
        MartsFailed: names the models and tests, and what they said.
    """
    with lease(settings, "marts", run_id, _WAIT_SECONDS):
        return _build_days(spark, settings, span, run_id, results, progress).names


def build_again(
    spark: "SparkSession", settings: "Settings", box: Box, run_id: str, results: "Results", progress: Progress
) -> list[str]:
    """Build one mart, and what is made from it, or test it again, for the days that a run has built; what ran.

    What is built is published when all tests of it have passed. Where the run has published nothing, because a model or a test
    failed, all of its marts are built and tested: its rows were taken back, and what one mart would show alone would not fit to
    the others.

    Args:
        box: the mart to build, or whose tests to run.
        progress: of the run.

    Raises:
        LeaseHeld: other runs build the marts all the time.
        LockstepError: the newest rows of a source have not passed their gate.
        MartsFailed: names the models and tests, and what they said.
    """
    with lease(settings, "marts", run_id, _WAIT_SECONDS):
        if reason := _held_back(settings, sources(spark, settings)):
            raise LockstepError(f"The marts wait: {reason}. Clear the task again when the gate is open.")
        names: list[str] = []
        for ends, is_published in progress.spans().items():
            start, end = (datetime.fromisoformat(moment) for moment in ends)
            only = box if is_published else None
            names += _build_days(spark, settings, (start, end), run_id, results, progress, only).names
        return names


def _held_back(settings: "Settings", tables: "Iterable[str]") -> str:
    """Why the marts wait; empty: they do not."""
    held = sorted(outcomes.latest(settings).held_back.keys() & set(tables))
    return f"the newest rows of {', '.join(held)} have not passed their gate" if held else ""


def _build_days(
    spark: "SparkSession",
    settings: "Settings",
    span: Span,
    run_id: str,
    results: "Results",
    progress: Progress | None = None,
    only: Box | None = None,
) -> Built:
    progress = progress or Progress()
    ends = (span[0].isoformat(), span[1].isoformat())
    is_test = only is not None and only.kind is Kind.TEST
    progress.say(f"dbt build of {days(span)}{_which(only)}")
    try:
        done = build(spark, settings, *span, run_id, progress, only)
    except MartsFailed as error:
        failed = error.failed or {"marts": str(error)}
        if is_test:
            progress.say("A test failed. What was published before stays what readers see.", level=logging.WARNING)
        else:
            progress.built(ends, [*failed])
        results.add(
            *(TableResult(f"{name} of {days(span)}", Outcome.FAILED, detail=why) for name, why in failed.items())
        )
        raise
    if not is_test:
        progress.built(ends)
    if done.names:
        warnings = (f"warning: {name}: {reason}" for name, reason in done.warned.items())
        detail = "; ".join([f"{len(done.names)} models and tests", *warnings])
        results.add(TableResult(f"marts of {days(span)}", Outcome.DONE, detail=detail))
    return done


def _which(only: Box | None) -> str:
    if only is None:
        return ""
    return f": the tests of {only.mart}" if only.kind is Kind.TEST else f": {only.mart} and what is made from it"


def days(span: Span) -> str:
    """The days of a span: ``2026-11-19``, or ``2026-11-19 to 2026-11-21``."""
    first, last = span[0], span[1] - timedelta(days=1)
    return f"{first:%F}" if first == last else f"{first:%F} to {last:%F}"


def missing(settings: "Settings", tables: "Iterable[str]") -> list[str]:
    """What the marts do not have yet: the sources of whose rows, or new rows, they do not know, and the days that wait."""
    known = TABLE.newest(settings)
    positions = known.get("positions", {})
    new = [f"rows of {table}" for table in tables if table not in positions or _new(settings, table, positions)]
    return [*new, *known.get("waiting", ())]


def forget(spark: "SparkSession", settings: "Settings", tables: "Collection[str]") -> None:
    """Forget up to where the marts know the rows of tables that are about to be removed. Days that wait are still built."""
    if not TABLE.newest(settings).get("positions", {}).keys() & {*tables}:
        return
    with TABLE.writing(spark, settings, "purge") as commit:
        before = commit.newest()
        kept = {table: version for table, version in before.get("positions", {}).items() if table not in tables}
        commit.append([], {**before, "positions": kept})


def _take_note(spark: "SparkSession", settings: "Settings", tables: "Iterable[str]", run_id: str) -> set[date]:
    """Add the days that new rows touch to those that wait, and commit them; all days that wait."""
    known = TABLE.newest(settings)
    positions: Mapping[str, int] = known.get("positions", {})
    waiting = {date.fromisoformat(day) for day in known.get("waiting", ())}
    new = [slice_ for table in tables if (slice_ := _new(settings, table, positions)) is not None]
    if not new:
        return waiting
    for slice_ in new:
        waiting |= touched(spark, settings, slice_)
    taken = {**positions, **{slice_.table: slice_.version for slice_ in new}}
    _record(spark, settings, run_id, {"positions": taken, "waiting": waiting}, [])
    return waiting


def _new(settings: "Settings", table: str, positions: "Mapping[str, int]") -> Slice | None:
    # Of other tables, such as the staging views or tables of the user, nobody records who has written what.
    return pending(settings, table, positions.get(table, -1)) if table.startswith(("silver.", "gold.")) else None


def _record(
    spark: "SparkSession", settings: "Settings", run_id: str, fields: "Mapping[str, Any]", rows: list[tuple[Any, ...]]
) -> None:
    with TABLE.writing(spark, settings, run_id) as commit:
        changed = {**fields, "waiting": sorted(day.isoformat() for day in fields["waiting"])}
        commit.append(rows, {**commit.newest(), **changed, "run_id": run_id, "code_version": code_version()})
