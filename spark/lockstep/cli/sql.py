"""``lockstep sql``."""

import csv
import logging
import sys
from typing import Annotated

import typer
from rich.console import Console

from lockstep import settings, terminal
from lockstep.catalog import connect
from lockstep.environments.remove import ensure_there
from lockstep.errors import LockstepError
from lockstep.session import collect
from lockstep.terminal import Listing


class SqlRefused(LockstepError):
    """Spark did not run the statement."""


AsCsv = Annotated[bool, typer.Option("--csv", help="For programs.")]
Limit = Annotated[int, typer.Option(help="The most rows that are printed; 0: all.")]


def sql(
    statement: Annotated[str, typer.Argument(help="A statement of Spark SQL; - reads it from the standard input.")],
    as_csv: AsCsv = False,
    limit: Limit = 1000,
) -> None:
    """Run a statement on the lake, such as `SELECT * FROM serving.<view>`. Times are in UTC.

    With --env dev, the tables of the environment are dev_gold.<view> and so on, beside those of production.
    """
    current = settings.load()
    if current.env:
        ensure_there(current)
    run(current, sys.stdin.read() if statement == "-" else statement, as_csv, limit)


def run(current: "settings.Settings", statement: str, as_csv: bool, limit: int) -> None:
    """Run a statement of Spark SQL, and print its rows.

    Raises:
        SqlRefused: says what Spark says.
    """
    from pyspark.errors import PySparkException

    # PySpark logs each error too, as JSON with its stack.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    with connect(current, "sql") as spark:
        try:
            rows = spark.sql(statement)
            found = collect(rows.limit(limit) if limit else rows)
        except PySparkException as error:
            # After the message, Spark prints the plan, or the place in its own code.
            message = str(error).partition("\n\nJVM stacktrace")[0].partition(";\n'")[0]
            raise SqlRefused(message.strip()) from error
    values = [[_text(value) for value in row.values()] for row in found.to_pylist()]
    if as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([found.column_names, *values])
        return
    table = Listing(*found.column_names)
    for row in values:
        table.add_row(*row)
    terminal.console().print(table)
    if limit and len(values) == limit:
        Console(stderr=True).print(f"The first {limit:,} rows; --limit 0 prints all.")


def _text(value: object) -> str:
    return "" if value is None else str(value)
