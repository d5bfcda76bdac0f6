"""``lockstep wait``: read your own writes."""

import re
import time
from collections.abc import Mapping
from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS, captured_tables
from lockstep.contracts.captured import database_of
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.definition.tables import serving_of
from lockstep.errors import LockstepError
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.reconcile.source_rows import await_capture
from lockstep.serving.as_of import Offsets, by_stream, parse_offsets
from lockstep.serving.read_your_writes import wait as work
from lockstep.settings import Settings

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def wait(
    view: Annotated[str, typer.Argument(help="The view whose answer you will read.")],
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OFFSETS", help="The offsets that follow the write: 0=121, or orders:0=121 for each stream."
        ),
    ] = None,
    lsn: Annotated[
        str, typer.Option(help="Of a captured table: PostgreSQL's pg_current_wal_insert_lsn() after the commit.")
    ] = "",
    timeout: Annotated[float, typer.Option(min=0, help="How long to wait, in seconds.")] = 30,
) -> None:
    """Wait until serving.<view> has read a write, and say how far it is if it has not; the exit code is 1 then.

    Without --after and --lsn: all that its topics have now.
    """
    if after and lsn:
        raise LockstepError("Give --after or --lsn, not both.")
    settings, (one,), began = configuration.load(), chosen(view), time.monotonic()
    if lsn:
        await_capture(settings, _database(settings, one), _number(lsn), timeout)
    offsets = by_stream(parse_offsets(after), one.streams, serving_of(one)) if after else _ends(settings, one)
    work(settings, one, offsets, max(timeout - (time.monotonic() - began), 0))
    typer.echo(f"{serving_of(one)} has it, after {time.monotonic() - began:.1f} s.")


def _ends(settings: Settings, view: View) -> Mapping[str, Offsets]:
    topics = {stream: CONTRACTS[stream].topic for stream in view.streams}
    found = offsets_of_topics(settings, [*topics.values()])
    return {stream: found[topic].stable_ends for stream, topic in topics.items()}


def _database(settings: Settings, view: View) -> str:
    """The source database of the view's captured tables."""
    found = sorted({database_of(settings, c) for c in captured_tables(view.streams).values()})
    if len(found) > 1:
        raise LockstepError(
            f"{view.name} reads tables of {' and '.join(found)}, each of which has LSNs of its own: give --after instead."
        )
    return found[0] if found else settings.package


def _number(lsn: str) -> int:
    match = _LSN.fullmatch(lsn)
    if not match:
        raise LockstepError(f"{lsn!r} is no LSN: write it as PostgreSQL does, such as 0/16B3748.")
    return (int(match[1], 16) << 32) + int(match[2], 16)
