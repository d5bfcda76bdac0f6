"""How Python workers of the Spark server start."""

import os
import time
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import functions as F
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed


def test_a_python_worker_imports_pyspark_with_its_bytecode(spark):
    @F.udf("boolean")
    def has_bytecode(_):
        import pyspark

        return Path(pyspark.__cached__).is_file()

    assert spark.range(1).select(has_bytecode("id")).first()[0], "from a zip, each worker compiles it anew"


def test_a_python_worker_starts_with_what_state_machines_need(spark):
    @F.udf("boolean")
    def has_it(_):
        import sys

        return {"pandas", "lockstep.live.machine", "lockstep.batch.compute"} <= sys.modules.keys()

    assert spark.range(1).select(has_it("id")).first()[0], "each worker imports it anew"


def test_no_more_python_workers_than_cores_wait_for_work(spark, settings, tmp_path):
    at_once = settings.cores + 2

    def meet(_):
        # Each waits until all have begun, so each has a worker of its own.
        (tmp_path / str(os.getpid())).touch()
        until = time.monotonic() + 60
        while len([*tmp_path.iterdir()]) < at_once and time.monotonic() < until:
            time.sleep(0.05)
        yield pa.RecordBatch.from_pydict({"worker": [os.getpid()], "daemon": [os.getppid()]})

    rows = spark.range(0, at_once, 1, at_once).mapInArrow(meet, "worker BIGINT, daemon BIGINT").collect()
    assert len({row.worker for row in rows}) == at_once, "not all of them ran at once"
    daemon = psutil.Process(rows[0].daemon)
    attempts = Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.2), retry=retry_if_result(lambda few: not few))
    assert attempts(lambda: len(daemon.children()) <= settings.cores), "each of them keeps its memory"
