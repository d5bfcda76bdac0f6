"""``lockstep asof``: a table as it was."""

from typing import Annotated

import typer

from lockstep import settings as configuration
from lockstep.cli.options import instant
from lockstep.cli.sql import AsCsv, Limit, SqlRefused, run
from lockstep.serving.as_of import AsOfRefused, Moment, parse_offsets, query


def asof(
    table: Annotated[str, typer.Argument(help="Its name, such as gold.<view>, silver.<stream> or ops.reconciliation.")],
    time: Annotated[
        str, typer.Option(metavar="TIME", help="As its newest commit until then left it: 2026-11-20T10:00:00Z.")
    ] = "",
    version: Annotated[int | None, typer.Option(help="A version of the Delta table.")] = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OFFSETS",
            help="What came before these offsets of its stream, 0=120,1=88; of several streams, orders:0=120 for each.",
        ),
    ] = None,
    as_csv: AsCsv = False,
    limit: Limit = 1000,
) -> None:
    """Print the rows of a table as they were at a time, at a version, or before offsets. Give one of the three.

    In SQL: SELECT * FROM gold.<view> VERSION AS OF 12, or TIMESTAMP AS OF '2026-11-20T10:00:00Z'.
    """
    if sum([bool(time), version is not None, bool(offset)]) != 1:
        raise AsOfRefused("Give one of --time, --version and --offset.")
    settings = configuration.load()
    moment = Moment(version, instant(time) if time else None, parse_offsets(offset or []))
    statement = query(settings, table, moment)
    try:
        run(settings, statement, as_csv, limit)
    except SqlRefused as refusal:
        raise AsOfRefused(
            f"{table} cannot be read as it was then. Files that were replaced are kept for {settings.retain_hours} hours "
            f"(LOCKSTEP_RETAIN_HOURS). Spark says: {refusal}"
        ) from refusal
