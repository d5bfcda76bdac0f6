"""``lockstep serving``: how fresh the merged answers are."""

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lockstep import settings as configuration
from lockstep.definition.registry import chosen
from lockstep.serving.merged import freshness, visible


def serving(
    views: Annotated[list[str] | None, typer.Argument(help="Views; without one, those that run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Show of each view until when its answer is final, and when each layer last wrote (UTC)."""
    settings = configuration.load()
    held = visible(settings)
    found = [freshness(settings, view, held) for view in chosen(",".join(views) if views else settings.views)]
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], indent=2, default=datetime.isoformat))
        return
    table = Table("view", "final until", "batch wrote", "live wrote", box=None, pad_edge=False)
    for one in found:
        table.add_row(one.view, *(_shown(moment) for moment in (one.final_until, one.batch_at, one.live_at)))
    Console().print(table)


def _shown(moment: datetime | None) -> str:
    if moment is None:
        return "-"
    return f"{moment:%F %T} ({(datetime.now(UTC) - moment).total_seconds():,.0f} s ago)"
