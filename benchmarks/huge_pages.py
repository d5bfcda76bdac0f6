"""Spark's JVM with huge pages and without, side by side. CPU seconds of a round of small jobs, and memory.

    python benchmarks/huge_pages.py

Needs no server. Both run at the same time, because one machine may be half as fast a minute later.
"""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import typer
from panes import PROPERTIES
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from lockstep.stack.java import HUGE_PAGES, SPARK_OPTIONS

FLAGS = {
    "without": [option for option in SPARK_OPTIONS if option != HUGE_PAGES],
    "with": [*SPARK_OPTIONS],
}
ROWS, USERS, COLUMNS = 20_000, 97, 40


def session(options: list[str]) -> SparkSession:
    """Spark on one core, with the server's memory."""
    jvm = {"spark.driver.memory": "1200m", "spark.driver.extraJavaOptions": " ".join(options)}
    builder = SparkSession.builder.master("local[1]")
    for name, value in (PROPERTIES | jvm).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def log(spark: SparkSession) -> DataFrame:
    """Records in JSON."""
    user, at = (F.col("id") % USERS).cast("string").alias("user"), F.lit("2026-01-01T00:00:00Z").alias("at")
    return spark.range(ROWS).select(F.to_json(F.struct("id", user, at, F.rand(seed=1).alias("amount"))).alias("value"))


def one_round(spark: SparkSession, path: str) -> None:
    """A small slice as refine and a roll-up have it, and a plan with many columns."""
    parsed = F.from_json("value", "id BIGINT, user STRING, at TIMESTAMP, amount DOUBLE")
    rows = spark.read.parquet(path).select(parsed.alias("row")).select("row.*").dropDuplicates(["id"])
    windows = rows.groupBy("user", F.window("at", "1 minute")).agg(F.count("*"), F.sum("amount"), F.max("id"))
    windows.join(spark.range(USERS).select(F.col("id").cast("string").alias("user")), "user").collect()
    wide = spark.range(10)
    for number in range(COLUMNS):
        wide = wide.withColumn(f"column_{number}", F.col("id") + number)
    wide.collect()


def measure(label: str, warm_up: float, seconds: float) -> str:
    """What a round costs the JVM of this process."""
    spark = session(FLAGS[label])
    (jvm,) = (child for child in psutil.Process().children(recursive=True) if child.name() == "java")

    def used() -> float:
        return sum(jvm.cpu_times()[:2])

    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "log")
        log(spark).write.parquet(path)
        begin = time.monotonic()
        while time.monotonic() - begin < warm_up:
            one_round(spark, path)
        before, rounds, begin = used(), 0, time.monotonic()
        while time.monotonic() - begin < seconds:
            one_round(spark, path)
            rounds += 1
    found = f"{(used() - before) / rounds:.2f}   {jvm.memory_full_info().pss / 2**20:,.0f} MB"
    spark.stop()
    return found


def main(pairs: int = 2, warm_up: float = 45, seconds: float = 40) -> None:
    """Measure both at the same time, a few times."""
    table = Table("", *FLAGS, title="CPU seconds of a round, PSS")
    for number in range(pairs):
        # A JVM is its process's own, so each pair has new ones.
        with ProcessPoolExecutor(len(FLAGS), multiprocessing.get_context("spawn")) as processes:
            found = processes.map(measure, FLAGS, repeat(warm_up), repeat(seconds))
            table.add_row(str(number + 1), *found)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
