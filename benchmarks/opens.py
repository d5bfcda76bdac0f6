"""What Spark pays to know the columns of a version that delta-rs has committed, with and without its checksum file.

On a running stack whose Spark server has nothing else to do (``lockstep up postgres spark``)::

    python benchmarks/opens.py --commits 20

After each commit to a table of its own, a SQL view over the table is replaced, as ``serving.*`` is after each cycle of gold.
Prints the server's CPU seconds for each, in rounds, because a server warms up.
"""

from pathlib import Path
from typing import Annotated, Any

import psutil
import pyarrow as pa
import typer
from rich.console import Console

from lockstep import lake
from lockstep.catalog import connect
from lockstep.lake import Txn
from lockstep.lake.small_commits import SmallCommits
from lockstep.settings import Settings, load

TABLE, VIEW = "staging.opened", "staging.opened_view"
WITHOUT, WITH = "without", "with checksums"


def server() -> psutil.Process:
    """The JVM of the Spark server."""
    return next(p for p in psutil.process_iter() if p.name() == "java" and "SparkSubmit" in " ".join(p.cmdline()))


def cpu_seconds(spark: Any, settings: Settings, which: str, commits: int) -> float:
    """Of the server, for each time that the view is replaced."""
    table, process, spent = SmallCommits(settings, TABLE), server(), 0.0
    for number in range(table.version + 1, table.version + 1 + commits):
        table.append(pa.table({"n": [number]}, table.schema), Txn("benchmark", number), {})
        if which == WITHOUT:
            Path(lake.path(settings, TABLE), "_delta_log", f"{table.version:020d}.crc").unlink()
        query = f"SELECT n, {number} AS x FROM {lake.catalog_name(settings, TABLE)}"  # noqa: S608
        before = process.cpu_times()
        lake.create_view(spark, settings, VIEW, {}, query)
        after = process.cpu_times()
        spent += after.user - before.user + after.system - before.system
    return spent / commits


def main(
    commits: Annotated[int, typer.Option(help="In each round.")] = 20,
    rounds: Annotated[int, typer.Option(help="With and without checksums, in turn.")] = 4,
) -> None:
    """Compare the two."""
    settings, console = load(), Console()
    with connect(settings, "benchmark") as spark:
        lake.create(spark, settings, TABLE, {"n": "BIGINT"})
        for _ in range(rounds):
            for which in (WITHOUT, WITH):
                console.print(f"{which}: {cpu_seconds(spark, settings, which, commits):.3f} CPU seconds")
        lake.drop_view(spark, settings, VIEW)
        lake.drop(spark, settings, TABLE)


if __name__ == "__main__":
    typer.run(main)
