"""``lockstep reconcile``: do both layers agree, and if not, why?"""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep import terminal
from lockstep.definition.registry import chosen
from lockstep.for_each import for_each
from lockstep.reconcile.report import junit, render
from lockstep.reconcile.run import reconcile as work


def reconcile(
    views: Annotated[list[str] | None, typer.Argument(help="Views; without one, those that run.")] = None,
    again_since: Annotated[
        datetime | None,
        typer.Option(help="Compare the windows that ended after this instant (UTC) again."),
    ] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write the result as JUnit XML.")] = None,
) -> None:
    """Compare live with batch, window by window. The exit code is 1 if a difference has no known cause."""
    settings = configuration.load()
    selected = chosen(",".join(views) if views else settings.views)
    again = again_since.replace(tzinfo=UTC) if again_since else None
    run_id = f"cli-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    reports = list(for_each("reconcile", partial(work, again_since=again), selected, run_id).values())
    terminal.console().print(render(reports))
    if junit_file:
        junit(reports).write(junit_file, encoding="utf-8", xml_declaration=True)
    if any(report.unexplained for report in reports):
        raise typer.Exit(1)
