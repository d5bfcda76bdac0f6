"""``lockstep erase``: forget a person, or records that were leaked into the log, in all layers."""

from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.erase import describe, receipt, run
from lockstep.erase.request import asked_for, check_signature
from lockstep.erase.scope import scope_of


def erase(
    subject: Annotated[
        str, typer.Option(help="Who: the value of the column that contracts name as subject; - asks for it.")
    ] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="Records instead: TOPIC:PARTITION:FROM-TO, the last offset left out. Repeat it."),
    ] = None,
    by: Annotated[str, typer.Option(help="Who signs.")] = "",
    reason: Annotated[str, typer.Option(help="Why. It is kept for ever, so it names nobody.")] = "",
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be erased; write nothing.")] = False,
) -> None:
    """Erase a person, or single records, in all layers, and prove it by a receipt. It cannot be undone.

    Stop the live queries first: `lockstep down live`. An erasure that was interrupted goes on when it is asked for again.
    """
    if subject == "-":
        # Not on the command line: shells keep a history.
        subject = typer.prompt("Who is to be forgotten", hide_input=True)
    if not plan:
        check_signature(subject, by, reason)
    settings = configuration.load()
    asked = asked_for(settings, subject, ranges or [])
    with connect(settings, "erase") as spark:
        if plan:
            typer.echo("\n".join(describe.as_lines(scope_of(spark, settings, asked))))
            return
        done = run.erase(spark, settings, asked, by, reason)
    if done is None:
        typer.echo("No record was found, so nothing was erased.")
        return
    typer.echo("\n".join(describe.lines(done.receipt)))
    typer.echo(f"receipt  {done.file}")
    if not receipt.is_empty(done.receipt):
        raise typer.Exit(1)
