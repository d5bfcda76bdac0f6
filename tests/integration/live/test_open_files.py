"""A live query leaves nothing behind in the Spark server, whose open files and heap are on day 400 as on day 1."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from pyspark import cloudpickle
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import service
from lockstep.catalog import connect
from lockstep.definition import Input, Keyed

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
BATCHES = 6


def _each(_, event):
    return None, [{"id": event.data["event_id"]}]


def _left_by_workers(server):
    """The server's ends of connections whose other end has gone."""
    return [one for one in server.net_connections("tcp") if one.status == psutil.CONN_CLOSE_WAIT]


def test_no_micro_batch_of_machines_leaves_its_connection_to_a_python_worker(settings, stack, stream, shop):
    view = Keyed(
        name=f"{stream.name}_each",
        columns={"id": "STRING"},
        key=("id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("event_id",)),),
        process=_each,
    )
    with connect(settings, "live") as spark:
        running = service.start(spark, settings, view)
        for number in range(BATCHES):
            shop.view(f"e{number}", number * 60)
            shop.heartbeat(number * 60 + 30)
            shop.flush()
            running.processAllAvailable()
        running.stop()
    # Those that another test's query is about to close may be among them. Spark 4.1.1 never closed one (SPARK-58932).
    few = Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.2), retry=retry_if_result(lambda n: n >= BATCHES))
    few(lambda: len(_left_by_workers(psutil.Process(stack.pid("spark")))))


def _queries_in_memory(pid):
    """How many queries, running or stopped, are still referred to: ``jcmd`` collects the garbage before it counts."""
    jcmd = Path(psutil.Process(pid).exe()).with_name("jcmd")
    histogram = subprocess.run(
        [jcmd, str(pid), "GC.class_histogram"], capture_output=True, text=True, check=True
    ).stdout
    found = (line.split() for line in histogram.splitlines() if line.split(" (")[0].endswith(".MicroBatchExecution"))
    return sum(int(instances) for _, instances, *_ in found)


@pytest.mark.slow
def test_a_stopped_query_leaves_the_heap_of_the_server(settings, stack, tmp_path):
    """Spark keeps it for an hour: a live service that starts its queries again each minute would fill the heap with plans."""
    pid = stack.pid("spark")
    before = _queries_in_memory(pid)
    with connect(settings, "live") as spark:
        for number in range(3):
            query = spark.readStream.format("rate").load().writeStream.format("noop")
            query.option("checkpointLocation", str(tmp_path / str(number))).start().stop()
        assert _queries_in_memory(pid) == before + 3
        gone = Retrying(stop=stop_after_delay(240), wait=wait_fixed(10), retry=retry_if_result(lambda n: n > before))
        gone(lambda: _queries_in_memory(pid))
