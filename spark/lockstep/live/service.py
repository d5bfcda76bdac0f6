"""The live service: keeps one query per view running on the Spark server. Run as ``python -m lockstep.live.service``.

The queries live in the server. When this process is killed they go on, and the next one finds them by its fixed session;
when the server is killed this process ends too, and its supervisor starts it again once the server is back.
"""

import logging
import signal
import sys
import threading
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

from tenacity import before_sleep_log, retry, stop_after_attempt, wait_exponential

from lockstep import settings
from lockstep.live import query
from lockstep.session import connect
from lockstep.views import VIEWS, View

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
POLL_SECONDS = 2


def session_of(config: "Settings", view: View) -> str:
    """The fixed session of a view's query: a MERGE takes its transaction id from the session, so each query has its own."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{config.lake}#live/{view.name}"))


def adopt_or_start(spark: "SparkSession", config: "Settings", view: View) -> "StreamingQuery":
    """The view's query: the one that still runs in its session, or a new one from the checkpoint."""
    for running in spark.streams.active:
        if running.name == view.name:
            log.info("%s: still running, goes on", view.name)
            return running
    log.info("%s: starting from its checkpoint", view.name)
    return query.start(spark, config, view)


class Service:
    """Runs the queries until it is told to stop.

    A query that fails is started again with backoff, without touching the others. An error that does not come from a
    query (the server is gone) ends the process.
    """

    def __init__(self, config: "Settings", stopping: threading.Event) -> None:
        self.config = config
        self.stopping = stopping

    def run(self) -> None:
        with ExitStack() as stack:
            sessions = {
                view: stack.enter_context(connect(self.config, "live", session_of(self.config, view)))
                for view in VIEWS.values()
            }
            queries = {view: self._start(spark, view) for view, spark in sessions.items()}
            while not self.stopping.wait(POLL_SECONDS):
                for view, spark in sessions.items():
                    if not queries[view].isActive:
                        log.error("%s: stopped: %s", view.name, queries[view].exception())
                        queries[view] = self._start(spark, view)
            for running in queries.values():
                running.stop()

    def _start(self, spark: "SparkSession", view: View) -> "StreamingQuery":
        attempt = retry(
            wait=wait_exponential(max=30),
            stop=stop_after_attempt(5),
            before_sleep=before_sleep_log(log, logging.WARNING),
            reraise=True,
        )
        return attempt(adopt_or_start)(spark, self.config, view)


def main() -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two micro-batches."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    Service(settings.load(), stopping).run()


if __name__ == "__main__":
    main()
