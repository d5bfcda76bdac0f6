"""The cost of a gate without its reading and writing of tables: Great Expectations in pandas, and the pages of the data docs.

    python benchmarks/gates.py --rows 500

Needs no server. The suites of the project's event streams are held against made-up rows that meet them: once with verdicts alone,
and once with the counts and observed values that `ops.quality` keeps. Then the pages are written: of a new platform, and of one
whose pages have all the history that they keep.
"""

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console

from lockstep.contracts import CONTRACTS
from lockstep.quality import docs
from lockstep.quality.checks import Check, check
from lockstep.quality.engine import batch_of, run
from lockstep.quality.history import NEWEST
from lockstep.quality.outcomes import Outcome
from lockstep.quality.suites import load, pii_columns
from lockstep.settings import Settings

COUNTS = {"result_format": "BASIC", "partial_unexpected_count": 3}
ROUNDS = 7
# A value of each column that a suite asks something of; others are texts.
VALUES: dict[str, Any] = {"device": "mobile", "page": "/", "endpoint": "/"}
NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL")


def made(table: str, rows: int) -> pd.DataFrame:
    """Rows that meet the suite of a stream's silver table."""
    contract = CONTRACTS[table.partition(".")[2]]
    columns: dict[str, Any] = {}
    for expectation in load(Settings(), table)["expectations"]:
        name = expectation["kwargs"]["column"]
        is_number = contract.columns.get(name, "STRING").partition("(")[0] in NUMBERS
        columns[name] = [200 if is_number else VALUES.get(name, "x")] * rows
    return pd.DataFrame(columns | {name: [f"{n}" for n in range(rows)] for name in contract.unique_id})


def cpu(work: Callable[[int], object]) -> float:
    """The median of CPU seconds, after a first round that is not counted."""
    work(0)
    taken = []
    for round_ in range(1, ROUNDS + 1):
        began = time.process_time()
        work(round_)
        taken.append(time.process_time() - began)
    return median(taken)


def main(rows: Annotated[int, typer.Option(help="Of each table.")] = 500) -> None:
    """Print CPU seconds."""
    tables = [f"silver.{name}" for name, contract in CONTRACTS.items() if contract.kind == "events"]
    frames = {table: made(table, rows) for table in tables}
    suites = {table: load(Settings(), table) for table in tables}

    def gate(result_format: Any) -> list[list[dict[str, Any]]]:
        return [run(batch_of(t, frames[t]), suites[t]["expectations"], result_format) for t in tables]

    def outcomes(number: int) -> list[Outcome]:
        at = datetime(2026, 11, 25, tzinfo=UTC) + timedelta(minutes=number)
        return [
            Outcome(table, table, checks_of(table, found), rows, "true", 1, at)
            for table, found in zip(tables, results, strict=True)
        ]

    def checks_of(table: str, found: list[dict[str, Any]]) -> tuple[Check, ...]:
        pairs = zip(suites[table]["expectations"], found, strict=True)
        return tuple(check(one, result, pii_columns(table), rows) for one, result in pairs)

    results = gate(COUNTS)
    console = Console(highlight=False)
    console.print(f"{len(tables)} tables of {rows} rows, CPU seconds")
    console.print(f"verdicts alone           {cpu(lambda _: gate('BOOLEAN_ONLY')):.3f}")
    console.print(f"with counts              {cpu(lambda _: gate(COUNTS)):.3f}")
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        console.print(f"pages, of a new platform {cpu(lambda n: docs.add(settings, outcomes(n), f'run-{n}')):.3f}")
        for number in range(NEWEST + 100):
            docs.add(settings, outcomes(100 + number), f"run-{100 + number}")
        console.print(
            f"pages, with all history  {cpu(lambda n: docs.add(settings, outcomes(900 + n), f'run-{900 + n}')):.3f}"
        )


if __name__ == "__main__":
    typer.run(main)
