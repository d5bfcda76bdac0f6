"""``lockstep describe``: what a table and its columns mean."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from difflib import get_close_matches
from itertools import groupby
from typing import Annotated

import typer

from lockstep import dictionary, settings, terminal
from lockstep.dictionary import Table
from lockstep.dictionary.models import models
from lockstep.errors import LockstepError
from lockstep.ledger import archive
from lockstep.live import progress
from lockstep.marts import published
from lockstep.marts import record as marts
from lockstep.new.render import SOURCES
from lockstep.new.sources import described
from lockstep.quality import outcomes
from lockstep.reconcile import notify
from lockstep.reconcile import record as reconciliation
from lockstep.replay import diff
from lockstep.replay import record as replays
from lockstep.serving import manifest
from lockstep.terminal import Listing

OPS = (
    archive.TABLE,
    outcomes.TABLE,
    progress.TABLE,
    manifest.TABLE,
    marts.TABLE,
    published.TABLE,
    reconciliation.TABLE,
    notify.CORRECTIONS,
    notify.ALERTS,
    replays.TABLE,
    diff.TABLE,
)
console = terminal.console()


class UnknownTable(LockstepError):
    """No table has that name."""


def describe(
    table: Annotated[str, typer.Argument(help="Its name, such as gold.<view>; all tables without one.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    write_dbt: Annotated[bool, typer.Option("--write-dbt", help=f"Write it into {SOURCES}, and show nothing.")] = False,
) -> None:
    """Say what a table and its columns mean, from the files of the project. Nothing has to run."""
    if write_dbt:
        file = settings.load().project / SOURCES
        file.write_text(described(file.read_text()))
        return
    known = {found.name: found for found in all_tables()}
    chosen = [_named(known, table)] if table else [*known.values()]
    if as_json:
        answers = [asdict(found) for found in chosen]
        typer.echo(json.dumps(answers[0] if table else answers, indent=2))
    elif table:
        _show(chosen[0])
    else:
        _list(chosen)


def all_tables() -> list[Table]:
    """The tables of the project, of its dbt models and of the platform, by layer."""
    ops = (dictionary.of_ops(table.name, table.columns) for table in OPS)
    return [*dictionary.tables(), *models(settings.load().project), *ops]


def _named(known: Mapping[str, Table], name: str) -> Table:
    if name in known:
        return known[name]
    bare = name.rpartition(".")[2]
    near = [full for full in known if full.partition(".")[2] == bare]
    near += [full for full in get_close_matches(name, known, n=3) if full not in near]
    also = f"did you mean {', '.join(near)}? " if near else ""
    raise UnknownTable(f"There is no table {name}: {also}`lockstep describe` lists all.")


def _list(tables: list[Table]) -> None:
    width = max(len(table.name) for table in tables)
    for layer, of_layer in groupby(tables, lambda table: table.layer):
        console.print(f"[bold]{layer}[/]")
        for table in of_layer:
            sentence = table.description.partition(". ")[0].removesuffix(".")
            console.print(f"  {table.name:{width}}  {sentence}".rstrip(), markup=False)


def _show(table: Table) -> None:
    console.print(f"[bold]{table.name}[/]")
    console.print(table.description or "Nobody has said what it means.", markup=False)
    for what, value in (("key", ", ".join(table.key)), ("time", table.time)):
        if value:
            console.print(f"{what:5} {value}")
    console.print()
    has_tokens = any(column.is_token for column in table.columns)
    grid = Listing("column", "type", *(["personal"] if has_tokens else []), "meaning")
    for column in table.columns:
        personal = ["token" if column.is_token else ""] if has_tokens else []
        # A long type, such as that of a struct, takes no room from the meanings.
        kind = column.type if len(column.type) <= 24 else column.type.partition("<")[0] + "<…>"
        grid.add_row(column.name, kind, *personal, column.description)
    console.print(grid)
