"""Spark's JVM with huge pages and without, side by side. CPU seconds of a round of small jobs, and memory.

    python benchmarks/huge_pages.py

Needs no server. Both run at the same time, because one machine may be half as fast a minute later.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from lockstep.stack.java import COMPILERS, HUGE_PAGES, NATIVE_MEMORY

FLAGS = {"without": (), "with": (HUGE_PAGES,)}
ROWS, USERS, COLUMNS = 20_000, 97, 40


def session(flags: tuple[str, ...]) -> SparkSession:
    """Spark on one core, with the options of the server's JVM."""
    options = ["-XX:+UseParallelGC", *COMPILERS, *NATIVE_MEMORY, *flags]
    properties = {
        "spark.driver.memory": "1200m",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in properties.items():
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


def measure(label: str, warm_up: float, seconds: float) -> None:
    """Print what a round costs this process's JVM, as JSON."""
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
    print(json.dumps({"cpu": (used() - before) / rounds, "mb": jvm.memory_full_info().pss / 2**20}))
    spark.stop()


def main(repeat: int = 2, warm_up: float = 45, seconds: float = 40, only: str = typer.Option("", hidden=True)) -> None:
    """Measure both at the same time, a few times."""
    if only:
        measure(only, warm_up, seconds)
        return
    table = Table("", *FLAGS, title="CPU seconds of a round, PSS")
    options = ["--warm-up", str(warm_up), "--seconds", str(seconds)]
    for number in range(repeat):
        both = [
            subprocess.Popen([sys.executable, __file__, *options, "--only", label], stdout=subprocess.PIPE, text=True)
            for label in FLAGS
        ]
        found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in both]
        table.add_row(str(number + 1), *(f"{one['cpu']:.2f}   {one['mb']:,.0f} MB" for one in found))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
