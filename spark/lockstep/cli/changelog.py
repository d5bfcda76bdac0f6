"""``lockstep changelog``: the compacted topics of captured tables."""

import typer

from lockstep import settings as configuration
from lockstep.cli.cdc import Streams, chosen, report
from lockstep.serving.changelog import Verified
from lockstep.serving.changelog import verify as rebuild

app = typer.Typer(help="The compacted topics of captured tables.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """The compacted topics of captured tables."""


@app.command()
def verify(
    streams: Streams = None,
) -> None:
    """Rebuild each table from its changelog topic alone, and compare it with the table; exit code 1 if they differ."""
    settings = configuration.load()
    found = [rebuild(settings, contract) for contract in chosen(streams)]
    report(map(sentence, found), differ=any(verified.differing for verified in found))


def sentence(verified: Verified) -> str:
    """What is printed of a topic: one line, and one for each of a few keys that differ."""
    if verified.version < 0:
        return f"empty   {verified.topic}: nothing was published yet"
    at = f"{verified.rows:,} rows of version {verified.version}"
    if not verified.differing:
        return f"equal   {verified.topic}: {at}"
    lines = [f"DIFFER  {verified.topic}: {at}, {len(verified.differing):,} keys differ; nobody else may write to it"]
    return "\n".join([*lines, *(f"        {key}" for key in verified.differing[:5])])
