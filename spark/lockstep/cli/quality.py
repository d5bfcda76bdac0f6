"""``lockstep quality``: what the gates have found, and suites from data."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep import terminal
from lockstep.catalog import connect
from lockstep.errors import LockstepError
from lockstep.quality import docs, outcomes, reports
from lockstep.quality import profile as profiling
from lockstep.quality.outcomes import Outcome
from lockstep.quality.suites import gated
from lockstep.suite_files import Severity, suite_text
from lockstep.terminal import Listing

app = typer.Typer(no_args_is_help=True, help="What the gates have found: outcomes, their trend, the data docs.")
console = terminal.console()
_BARS = " ▁▂▃▄▅▆▇█"
_TREND = 24
Day = Annotated[str | None, typer.Option("--day", help="Only the runs of this day (UTC), such as 2026-11-24.")]


@app.command("list")
def list_() -> None:
    """Show the newest outcome of each gate. The exit code is 1 if one is shut."""
    settings = configuration.load()
    verdicts = outcomes.latest(settings).verdicts
    table = Listing("table", "gate")
    for name in sorted({*gated(settings), *verdicts}):
        verdict = verdicts.get(name)
        style = "dim" if verdict is None else "red" if not verdict.success else "yellow" if verdict.warned else ""
        table.add_row(name, str(verdict or "has not checked anything yet"), style=style)
    console.print(table)
    if any(not verdict.success for verdict in verdicts.values()):
        raise typer.Exit(1)


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="The table, as layer.name.")],
    day: Day = None,
    runs: Annotated[int, typer.Option("--runs", help="How many of the newest runs.")] = 20,
) -> None:
    """Show each expectation of a table's newest run with its trend, and the runs before: when, which rows, what failed."""
    settings = configuration.load()
    since, until = _of_day(day) if day else (datetime.now(UTC) - timedelta(hours=settings.airflow_hours), None)
    found = reports.outcomes(settings, since, until, table)
    if not found:
        raise LockstepError(
            f"No gate has checked {table}{f' on {day}' if day else ''}: `lockstep quality list` names the tables with a suite."
        )
    newest = found[0][0]
    checks = Listing("severity", "expectation", "does not hold", "observed", "trend")
    for check in newest.results:
        wrong = "" if check.success else "yellow" if check.severity is Severity.WARN else "red"
        count = "" if check.unexpected is None else f"{check.unexpected:,} of {check.elements or 0:,}"
        trend = _trend([outcome for outcome, _ in found], check.expectation)
        checks.add_row(check.severity.value, check.expectation, count, check.observed or "", trend, style=wrong)
    console.print(f"{table}: {newest.verdict}, {newest.checked_at:%F %T} UTC")
    console.print(checks)
    past = Listing("checked (UTC)", "gate", "run", "what failed", "slice")
    for outcome, run in found[: None if day else runs]:
        failed = "; ".join([*outcome.failed, *outcome.warned])
        past.add_row(f"{outcome.checked_at:%F %T}", str(outcome.verdict), run, failed, outcome.slice)
    console.print(past)


@app.command("docs")
def docs_() -> None:
    """Write the data docs again, from what ops.quality has."""
    settings = configuration.load()
    since = datetime.now(UTC) - timedelta(hours=settings.airflow_hours)
    console.print(docs.rebuild(settings, reports.outcomes(settings, since)).as_uri())


@app.command()
def profile(table: Annotated[str, typer.Argument(help="The table, as layer.name.")]) -> None:
    """Propose a suite for a table from its rows, as JSON to review. Nothing is written.

    What may be chance, such as the set of values of a text, only warns.
    """
    settings = configuration.load()
    with connect(settings, "profile") as spark:
        expectations = profiling.profile(spark, settings, table)
    notes = f"Proposed from the rows of {datetime.now(UTC):%F}: review each line."
    typer.echo(suite_text(table, notes, expectations), nl=False)


def _of_day(day: str) -> tuple[datetime, datetime]:
    try:
        start = datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise LockstepError(f"{day!r} is not a day: write it as 2026-11-24.") from None
    return start, start + timedelta(days=1)


def _trend(found: list[Outcome], expectation: str) -> str:
    """A bar for each of the newest runs, the oldest on the left: the share of rows that did not hold."""
    shares = []
    for outcome in found[:_TREND]:
        check = next((one for one in outcome.results if one.expectation == expectation), None)
        if check is not None:
            counted = check.unexpected is not None and check.elements
            shares.append(check.unexpected / check.elements if counted else float(not check.success))  # type: ignore[operator]
    most = max(shares, default=0)
    return "".join(_BARS[round(share / most * 8)] if most else "·" for share in reversed(shares))
