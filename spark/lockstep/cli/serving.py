"""``lockstep serving``: how fresh the merged views are."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep import terminal
from lockstep.definition.registry import chosen
from lockstep.serving.merged import freshness, visible
from lockstep.terminal import Listing


def serving(
    views: Annotated[list[str] | None, typer.Argument(help="Views; without one, those that run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show until when each view is final, and when each of its layers last wrote (UTC)."""
    settings = configuration.load()
    versions = visible(settings)
    answers = [freshness(settings, view, versions) for view in chosen(",".join(views) if views else settings.views)]
    if as_json:
        typer.echo(json.dumps([asdict(answer) for answer in answers], indent=2, default=datetime.isoformat))
        return
    table = Listing("view", "final until", "batch wrote", "live wrote")
    for answer in answers:
        table.add_row(answer.view, *(_time(at) for at in (answer.final_until, answer.batch_at, answer.live_at)))
    terminal.console(wide=True).print(table)


def _time(at: datetime | None) -> str:
    if at is None:
        return "-"
    return f"{at:%F %T} ({(datetime.now(UTC) - at).total_seconds():,.0f} s ago)"
