"""A live query leaves nothing open in the Spark server: on day 400 it has as many open files as on day 1."""

import sys
from datetime import timedelta

import psutil
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
