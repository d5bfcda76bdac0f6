"""The time of a new session on Spark's own Connect server, and on ours, whose sessions share generated code and Python workers.

    python benchmarks/sessions.py --sessions 8

Starts one server after the other, in a home of its own. A session appends to a Delta table, reads it, groups it, and groups it
again in Python. Prints JSON: the seconds of each session by server. The first session includes the start of a cold JVM.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import functions as F
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lockstep import settings
from lockstep.session import open_session
from lockstep.settings import Settings
from lockstep.stack import net, spark_server
from lockstep.stack.errors import Unhealthy

OURS, SPARKS = "connect_server.py", "SparkConnectServer"
MAIN = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]


@contextmanager
def running(which: str, home: Path) -> Iterator[Settings]:
    """A Spark server with our configuration and one of the two main classes, once it answers."""
    port, ui = net.free_port(), net.free_port()
    own = {"home": home, "lake": f"file://{home}/lake", "spark_port": port, "spark_ui_port": ui}
    config = settings.load().model_copy(update=own | {"spark_remote": f"sc://127.0.0.1:{port}"})
    launch = spark_server.launch(config)
    argv = list(launch.argv) if which == OURS else [*launch.argv[:-1], *MAIN]
    with (home / "spark.log").open("w") as log:
        server = subprocess.Popen(
            argv, env=os.environ | dict(launch.env), cwd=home, stdout=log, stderr=log, pass_fds=launch.keep_open
        )
    try:
        Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), retry=retry_if_exception_type(Unhealthy))(
            spark_server.check, config
        )
        yield config
    finally:
        server.terminate()
        server.wait(60)
        for held in launch.keep_open:
            os.close(held)


def work(config: Settings) -> float:
    """The seconds that a new session takes for four small queries."""
    began = time.monotonic()
    spark: Any = open_session(f"{config.spark_remote}/;user_id=benchmark")
    rows = spark.range(1000).select("id", (F.col("id") % 7).alias("k"), F.concat(F.lit("a"), F.col("id")).alias("s"))
    rows.write.format("delta").mode("append").save(f"{config.lake}/rows")
    read = spark.read.format("delta").load(f"{config.lake}/rows")
    read.groupBy("k").agg(F.count("*"), F.max("s")).collect()
    read.groupBy("k").applyInPandas(lambda group: group.head(1), read.schema).collect()
    spark.stop()
    return round(time.monotonic() - began, 2)


def main(sessions: Annotated[int, typer.Option(help="How many, one after another.")] = 8) -> None:
    """Time the sessions on both servers."""
    seconds = {}
    for which in (SPARKS, OURS):
        with tempfile.TemporaryDirectory() as home, running(which, Path(home)) as config:
            seconds[which] = [work(config) for _ in range(sessions)]
    print(json.dumps(seconds))


if __name__ == "__main__":
    typer.run(main)
