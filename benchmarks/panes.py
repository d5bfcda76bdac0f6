"""Overlapping windows in batch: each row counted in its pane, and in each of its windows. CPU seconds of Spark.

    python benchmarks/panes.py

Needs no server. The rows are of half an hour.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import psutil
import pyarrow as pa
import pyarrow.parquet
import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from lockstep.definition.windowing import in_one_step, transform
from shop.views import page_views_per_five_minutes, response_times, trending_pages, trending_products

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEWS = [module.VIEW for module in (page_views_per_five_minutes, response_times, trending_pages, trending_products)]
START = datetime(2026, 1, 1, tzinfo=UTC)
# The server's, on a machine with two cores.
PROPERTIES = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


@contextmanager
def local_session() -> "Iterator[SparkSession]":
    """Spark in this process, on two cores."""
    builder = SparkSession.builder.master("local[2]")
    for name, value in PROPERTIES.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def log(spark: "SparkSession", folder: Path, rows: int) -> "DataFrame":
    """Page views and requests in one table, in files, as silver is."""
    dice, step = random.Random(1), timedelta(minutes=30) / rows  # noqa: S311
    times = [START + n * step for n in range(rows)]
    table = pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("us", "UTC")),
            "_arrival": pa.array(times, pa.timestamp("us", "UTC")),
            "page": [f"/product/{int(dice.paretovariate(0.6)) % 300}" for _ in times],
            "endpoint": [f"/api/{n % 20}" for n in range(rows)],
            "response_ms": pa.array([int(dice.lognormvariate(4, 1)) for _ in times], pa.int32()),
            "status": pa.array([500 if n % 50 == 0 else 200 for n in range(rows)], pa.int32()),
        }
    )
    pa.parquet.write_table(table, folder / "log.parquet")
    return spark.read.parquet(str(folder))


def cpu_seconds(work: Callable[[], object], rounds: int) -> float:
    """The median of some runs, after as many that warm up; of this process's children, which Spark is."""
    taken = []
    for _ in range(2 * rounds):
        before = _used()
        work()
        taken.append(_used() - before)
    return median(taken[rounds:])


def _used() -> float:
    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(time.user + time.system for time in times)


def main(rows: int = 40_000, rounds: int = 4) -> None:
    """Print a line for each view."""
    table = Table("view", "each window, CPU s", "panes, CPU s", "ratio", title=f"{rows:,} rows")
    with local_session() as spark, TemporaryDirectory() as folder:
        found = log(spark, Path(folder), rows)
        for view in VIEWS:
            one, other = (
                cpu_seconds(lambda way=way, view=view: way(view, found).collect(), rounds)
                for way in (in_one_step, transform)
            )
            table.add_row(view.name, f"{one:.2f}", f"{other:.2f}", f"{one / other:.1f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
