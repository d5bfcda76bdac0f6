"""The live service: keeps one query per view running on the Spark server. Run as ``python -m lockstep.service``.

The queries live in the server. When this process is killed they go on, and the next one finds them by its fixed session;
when the server is killed this process ends too, and its supervisor starts it again once the server is back.
"""

import itertools
import json
import logging
import signal
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg2
from pyspark.errors import AnalysisException, PySparkException

from lockstep import heartbeat, settings
from lockstep.catalog import connect
from lockstep.checkpoints import inspection, journal
from lockstep.checkpoints.begin import begin
from lockstep.checkpoints.journal import FileDigest
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.errors import LockstepError
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import generations, query
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.generations import Generation
from lockstep.live.progress import Progress, parse, publish
from lockstep.sinks.alerts import send_waiting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
POLL_SECONDS = 2
LONGEST_PAUSE_SECONDS = 30.0
PUBLISH_SECONDS = 20.0


def session_of(config: "Settings", view: View) -> str:
    """The fixed session of a view's query: a MERGE takes its transaction id from the session, so each query has its own."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{config.lake}#live/{view.name}"))


def adopt_or_start(spark: "SparkSession", config: "Settings", view: View) -> "StreamingQuery":
    """The view's query: the one that still runs in its session, or a new one from the checkpoint of its generation.

    Raises:
        LockstepError: it may not start, and why.
    """
    generation = generations.get(config, view.name)
    for running in spark.streams.active:
        if running.name == view.name:
            if running.id == Checkpoint(generation.location(config)).id():
                log.info("%s: still running, goes on", view.name)
                return running
            log.info("%s: of an earlier generation, is stopped", view.name)
            running.stop()
    log.info("%s: starting from its checkpoint of generation %d", view.name, generation.number)
    return start(spark, config, view)


def start(spark: "SparkSession", config: "Settings", view: View) -> "StreamingQuery":
    """Start the view's query, if it may start: see :func:`lockstep.checkpoints.begin.begin`."""
    generation = begin(spark, config, view)
    return query.start(spark, config, view, generation)


@dataclass
class QueryHandle:
    """One view's query, and how often in a row it has failed; it is tried again after ever longer pauses."""

    view: View
    spark: "SparkSession"
    running: "StreamingQuery | None" = None
    generation: Generation | None = None
    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None
    journal: Mapping[str, FileDigest] | None = None
    state_rows: int | None = None

    def look(self, config: "Settings", now: float, generation: Generation) -> None:
        """Start the query when it does not run and its time has come; tell why it stopped; follow it to a new generation.

        An error that does not come from the query, such as a server that is gone, is raised.
        """
        if self.running is not None and self.running.isActive:
            if generation == self.generation:
                # A batch that fails again and again must not look like a start that went well.
                if self.failures and self.running.lastProgress is not None:
                    self.failures, self.error = 0, None
                return
            log.info("%s: generation %d begins: %s", self.view.name, generation.number, generation.why)
            self.running.stop()
            self.running, self.retry_at = None, now
        if self.running is not None:
            self._failed(self.running.exception(), now)
            self.running = None
        if now < self.retry_at and generation == self.generation:
            return
        self.generation, self.journal, self.state_rows = generation, None, None
        topics = [CONTRACTS[stream].topic for stream in self.view.streams]
        missing = sorted(set(topics) - offsets_of_existing_topics(config, topics).keys())
        if missing:
            self._failed(f"no topic {', '.join(missing)} yet", now)
            return
        try:
            self.running = adopt_or_start(self.spark, config, self.view)
        except (LockstepError, AnalysisException) as error:
            # What is wrong with this query is no reason to stop the others.
            self._failed(error, now)

    def witness(self, config: "Settings") -> None:
        """Write the checkpoint's new files into its journal."""
        if self.running is not None and self.generation is not None:
            seen = journal.known(config, self.generation) if self.journal is None else self.journal
            self.journal = journal.update(config, self.generation, seen)

    def count_state(self, spark: "SparkSession", config: "Settings") -> None:
        """Count the rows of the query's state, which its micro-batches do not track because that costs them time."""
        try:
            found = inspection.stores(spark, config, self.view)
        except (LockstepError, PySparkException) as error:
            # Nothing yet, or Spark has removed an old file meanwhile.
            log.info("%s: its state was not counted: %s", self.view.name, str(error).partition("\n")[0])
            return
        self.state_rows = sum(store.rows for store in found)

    def progress(self) -> Progress:
        """What the query says of itself."""
        said = self.running.lastProgress if self.running is not None else None
        number = self.generation.number if self.generation else 1
        found = json.loads(said.json) if said else None
        return parse(self.view.name, number, found, self.failures, self.error, self.state_rows)

    def _failed(self, reason: object, now: float) -> None:
        pause = min(2.0**self.failures, LONGEST_PAUSE_SECONDS)
        self.failures, self.retry_at = self.failures + 1, now + pause
        self.error = str(reason).partition("\n")[0]
        log.error("%s: %s; next try in %.0f s", self.view.name, self.error, pause)


def run(config: "Settings", stopping: threading.Event, publish_seconds: float = PUBLISH_SECONDS) -> None:
    """Keep every view's query running until told to stop; one that fails does not touch the others.

    Args:
        publish_seconds: how often the queries' progress and the journals of their checkpoints are written.
    """
    with ExitStack() as stack:
        kept = [
            QueryHandle(view, stack.enter_context(connect(config, "live", session_of(config, view))))
            for view in chosen(config.views)
        ]
        own = stack.enter_context(connect(config, "live"))
        heartbeat.report(config)
        # One of them each time: it takes about a second.
        turns = itertools.cycle(kept)
        publish_at = time.monotonic() + publish_seconds
        while not stopping.is_set():
            try:
                _round(own, config, kept)
                if kept and time.monotonic() >= publish_at:
                    for one in kept:
                        one.witness(config)
                    for one in itertools.islice(turns, 1):
                        one.count_state(own, config)
                    publish(own, config, [one.progress() for one in kept])
                    send_waiting(config)
                    publish_at = time.monotonic() + publish_seconds
            except psycopg2.OperationalError as error:
                log.error("the control database does not answer, the queries go on as they are: %s", error)
            stopping.wait(POLL_SECONDS)
        for one in kept:
            if one.running is not None:
                one.running.stop()
                one.witness(config)


def _round(spark: "SparkSession", config: "Settings", kept: list[QueryHandle]) -> None:
    if not kept:
        # A project without views: nothing else asks whether the server still answers.
        spark.sql("SELECT 1").collect()
        heartbeat.report(config)
    current = generations.all_current(config)
    for one in kept:
        one.look(config, time.monotonic(), current.get(one.view.name, Generation(one.view.name)))
        heartbeat.report(config)


def main() -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two micro-batches."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(settings.load(), stopping)


if __name__ == "__main__":
    main()
