"""The live service: keeps one query per view running on the Spark server. Run as ``python -m lockstep.live.service``.

The queries live in the server. When this process is killed they go on, and the next one finds them by its fixed session;
when the server is killed this process ends too, and its supervisor starts it again once the server is back.
"""

import logging
import signal
import sys
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep import settings
from lockstep.contracts import CONTRACTS
from lockstep.ingest.offsets import existing_bounds
from lockstep.live import query
from lockstep.session import connect
from lockstep.views import View, chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
POLL_SECONDS = 2
LONGEST_PAUSE_SECONDS = 30.0


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


@dataclass
class Kept:
    """One view's query, and how often in a row it has failed; it is tried again after ever longer pauses."""

    view: View
    spark: "SparkSession"
    running: "StreamingQuery | None" = None
    failures: int = 0
    retry_at: float = 0.0

    def look(self, config: "Settings", now: float) -> None:
        """Start the query when it does not run and its time has come; tell why it stopped.

        An error that does not come from the query, such as a server that is gone, is raised.
        """
        if self.running is not None and self.running.isActive:
            self.failures = 0
            return
        if self.running is not None:
            self._failed(self.running.exception(), now)
            self.running = None
        topics = [CONTRACTS[stream].topic for stream in self.view.streams]
        if now < self.retry_at:
            return
        missing = sorted(set(topics) - existing_bounds(config, topics).keys())
        if missing:
            self._failed(f"no topic {', '.join(missing)} yet", now)
            return
        self.running = adopt_or_start(self.spark, config, self.view)

    def _failed(self, reason: object, now: float) -> None:
        pause = min(2.0**self.failures, LONGEST_PAUSE_SECONDS)
        self.failures, self.retry_at = self.failures + 1, now + pause
        log.error("%s: %s; next try in %.0f s", self.view.name, str(reason).partition("\n")[0], pause)


def run(config: "Settings", stopping: threading.Event) -> None:
    """Keep every view's query running until told to stop; one that fails does not touch the others."""
    with ExitStack() as stack:
        kept = [
            Kept(view, stack.enter_context(connect(config, "live", session_of(config, view))))
            for view in chosen(config.views)
        ]
        while not stopping.is_set():
            for one in kept:
                one.look(config, time.monotonic())
            stopping.wait(POLL_SECONDS)
        for one in kept:
            if one.running is not None:
                one.running.stop()


def main() -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two micro-batches."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(settings.load(), stopping)


if __name__ == "__main__":
    main()
