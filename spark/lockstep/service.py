"""The live service: keep one query per view running on the Spark server. Run as ``python -m lockstep.service``.

The queries run in the server. If this process is killed, they continue, and the next process finds each one in its fixed
session. If the server is killed, this process ends too, and its supervisor starts it again when the server is back.
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
from lockstep.checkpoints.journal import FileDigest
from lockstep.checkpoints.prepare import prepare_start
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
# How often the queries and their generations are looked at: as soon as an operator expects to see what a reset does.
POLL_SECONDS = 2
# The pause before a failed query's next try doubles up to this. A query runs again soon after the cause of its failure is gone.
LONGEST_PAUSE_SECONDS = 30.0
# Each publication is a commit to a Delta table, and lists all files of the checkpoints. The files of the last seconds, which the
# journal does not have yet, are still verified by their checksums.
PUBLISH_SECONDS = 20.0


def session_of(config: "Settings", view: View) -> str:
    """The id of the session of a view's query. A MERGE takes its transaction id from the session, so each query has its own."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{config.lake}#live/{view.name}"))


def adopt_or_start(spark: "SparkSession", config: "Settings", view: View) -> "StreamingQuery":
    """The view's query: the one that still runs in its session, or a new one from the checkpoint of its generation.

    Raises:
        LockstepError: the query may not start; the message says why.
    """
    generation = generations.get(config, view.name)
    for running in spark.streams.active:
        if running.name == view.name:
            if running.id == Checkpoint(generation.location(config)).id():
                log.info("%s: the query still runs and continues", view.name)
                return running
            log.info("%s: the query that runs is of an earlier generation, so it is stopped", view.name)
            running.stop()
    log.info("%s: starting from the checkpoint of generation %d", view.name, generation.number)
    return start(spark, config, view)


def start(spark: "SparkSession", config: "Settings", view: View) -> "StreamingQuery":
    """Start the view's query, if it may start: see :func:`lockstep.checkpoints.prepare.prepare_start`."""
    generation = prepare_start(spark, config, view)
    return query.start(spark, config, view, generation)


@dataclass
class QueryHandle:
    """One view's query. A query that fails is started again, after a pause that grows with each failure in a row.

    Args:
        failures: how often in a row the query has failed.
        retry_at: when it may be started again (monotonic clock).
        error: why it failed the last time.
        journal: the digests of its checkpoint's files, by path; None before they were read.
        state_rows: the last count of its state's rows.
    """

    view: View
    spark: "SparkSession"
    running: "StreamingQuery | None" = None
    generation: Generation | None = None
    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None
    journal: Mapping[str, FileDigest] | None = None
    state_rows: int | None = None

    def supervise(self, config: "Settings", now: float, generation: Generation) -> None:
        """Start the query if it does not run and its pause is over. Log why it stopped. Switch it to a new generation.

        An error that is not the query's own, such as a lost server, is raised.
        """
        if self.running is not None and self.running.isActive:
            if generation == self.generation:
                # A start alone proves nothing: the failures are forgotten only after a batch.
                if self.failures and self.running.lastProgress is not None:
                    self.failures, self.error = 0, None
                return
            log.info("%s: generation %d begins: %s", self.view.name, generation.number, generation.reason)
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
            # A problem of this query is no reason to stop the others.
            self._failed(error, now)

    def update_journal(self, config: "Settings") -> None:
        """Add the checkpoint's new files to its journal."""
        if self.running is not None and self.generation is not None:
            known = journal.digests(config, self.generation) if self.journal is None else self.journal
            self.journal = journal.update(config, self.generation, known)

    def count_state(self, spark: "SparkSession", config: "Settings") -> None:
        """Count the rows of the query's state. The micro-batches do not count them, because that would take them time."""
        try:
            stores = inspection.state_stores(spark, config, self.view)
        except (LockstepError, PySparkException) as error:
            # There is no state yet, or Spark has removed an old file meanwhile.
            log.info("%s: its state was not counted: %s", self.view.name, str(error).partition("\n")[0])
            return
        self.state_rows = sum(store.rows for store in stores)

    def progress(self) -> Progress:
        """The query's progress, as Spark reports it."""
        report = self.running.lastProgress if self.running is not None else None
        number = self.generation.number if self.generation else 1
        last_progress = json.loads(report.json) if report else None
        return parse(self.view.name, number, last_progress, self.failures, self.error, self.state_rows)

    def _failed(self, reason: object, now: float) -> None:
        pause = min(2.0**self.failures, LONGEST_PAUSE_SECONDS)
        self.failures, self.retry_at = self.failures + 1, now + pause
        self.error = str(reason).partition("\n")[0]
        log.error("%s: %s; the next try is in %.0f s", self.view.name, self.error, pause)


def run(config: "Settings", stopping: threading.Event, publish_seconds: float = PUBLISH_SECONDS) -> None:
    """Keep every view's query running until ``stopping`` is set. A query that fails does not affect the others.

    Args:
        publish_seconds: how often the queries' progress and the journals of their checkpoints are written.
    """
    with ExitStack() as stack:
        handles = [
            QueryHandle(view, stack.enter_context(connect(config, "live", session_of(config, view))))
            for view in chosen(config.views)
        ]
        own = stack.enter_context(connect(config, "live"))
        heartbeat.report(config)
        # A count takes about a second, so only one query is counted at each publication.
        turns = itertools.cycle(handles)
        publish_at = time.monotonic() + publish_seconds
        while not stopping.is_set():
            try:
                _supervise_all(own, config, handles)
                if handles and time.monotonic() >= publish_at:
                    for handle in handles:
                        handle.update_journal(config)
                    for handle in itertools.islice(turns, 1):
                        handle.count_state(own, config)
                    publish(own, config, [handle.progress() for handle in handles])
                    send_waiting(config)
                    publish_at = time.monotonic() + publish_seconds
            except psycopg2.OperationalError as error:
                log.error("the control database does not answer; the queries continue as they are: %s", error)
            stopping.wait(POLL_SECONDS)
        for handle in handles:
            if handle.running is not None:
                handle.running.stop()
                handle.update_journal(config)


def _supervise_all(spark: "SparkSession", config: "Settings", handles: list[QueryHandle]) -> None:
    if not handles:
        # A project without views: nothing else asks whether the server still answers.
        spark.sql("SELECT 1").collect()
        heartbeat.report(config)
    current = generations.all_current(config)
    for handle in handles:
        generation = current.get(handle.view.name, Generation(handle.view.name))
        handle.supervise(config, time.monotonic(), generation)
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
