"""The live service: keep the jobs of all views running on the Spark server. Run as ``python -m lockstep.service``.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psycopg2
from pyspark.errors import AnalysisException, PySparkException

from lockstep import heartbeat, settings
from lockstep.catalog import connect
from lockstep.checkpoints import inspection, journal
from lockstep.checkpoints.forks import separate
from lockstep.checkpoints.journal import FileDigest
from lockstep.checkpoints.prepare import ViewCannotJoin, prepare_start
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.errors import LockstepError
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import generations, query
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.generations import Generation, Job
from lockstep.live.machine import found_failure
from lockstep.live.progress import Progress, parse, publish
from lockstep.live.quiet_partitions import QuietPartitions
from lockstep.live.sink import Member
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


def session_of(config: "Settings", job: Job) -> str:
    """The id of the session of a job's query: the number of state partitions is a setting of the session."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{config.lake}#live/{job.name}"))


def adopt_or_start(
    spark: "SparkSession", config: "Settings", members: Sequence[Member], every: float
) -> "StreamingQuery":
    """The job's query: the one that still runs in its session, or a new one from its checkpoint.

    Args:
        every: the seconds between two micro-batches of a new one.

    Raises:
        ViewCannotJoin: one of several views keeps the job from starting.
        LockstepError: the query may not start; the message says why.
    """
    job, name = members[0][0].job, query.name(members)
    for running in spark.streams.active:
        if running.name == name and running.id == Checkpoint(job.location(config)).id():
            log.info("%s: the query still runs and continues", name)
            return running
        log.info("%s: the query %s that runs is of before, so it is stopped", name, running.name)
        running.stop()
    log.info("%s: starting from the checkpoint %s, with a micro-batch every %.1f s", name, job, every)
    return query.start(spark, config, prepare_start(spark, config, members), every)


def seconds_between_batches(jobs: int, cores: int) -> float:
    """How often each of the live jobs begins a micro-batch.

    A small one takes half a second of a core. So all of them take about half of the cores, and the batch layer has the rest.
    """
    return max(1.0, jobs / cores)


def start(spark: "SparkSession", config: "Settings", *views: View) -> "StreamingQuery":
    """Start the query of a job that runs these views, if it may: see :func:`lockstep.checkpoints.prepare.prepare_start`."""
    return query.start(spark, config, prepare_start(spark, config, members_of(config, views)))


def members_of(config: "Settings", views: Iterable[View]) -> list[Member]:
    """The views, each with its current generation."""
    current = generations.all_current(config)
    return [(current.get(view.name, Generation(view.name)), view) for view in views]


@dataclass
class JobHandle:
    """One job's query. A query that fails is started again, after a pause that grows with each failure in a row.

    Args:
        failures: how often in a row the query has failed.
        retry_at: when it may be started again (monotonic clock).
        error: why it failed the last time.
        journal: the digests of its checkpoint's files, by path; None before they were read.
        state_rows: by view, the last count of its state's rows.
    """

    members: Sequence[Member]
    spark: "SparkSession"
    running: "StreamingQuery | None" = None
    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None
    journal: Mapping[str, FileDigest] | None = None
    state_rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """The job, whose members may change."""
        return self.members[0][0].job

    def run_only(self, members: Sequence[Member], now: float) -> None:
        """Go on with these members: a view that has left the job has a generation of its own."""
        if members != self.members:
            self.stop()
            self.members, self.retry_at = members, now

    def stop(self) -> None:
        """Stop the query between two micro-batches, if it runs."""
        if self.running is not None:
            self.running.stop()
            self.running = None

    def supervise(self, config: "Settings", now: float, every: float) -> None:
        """Start the query if it does not run and its pause is over, with a micro-batch every so many seconds. Log why it stopped.

        An error that is not the query's own, such as a lost server, is raised.
        """
        if self.running is not None and self.running.isActive:
            # A start alone proves nothing: the failures are forgotten only after a batch.
            if self.failures and self.running.lastProgress is not None:
                self.failures, self.error = 0, None
            return
        if self.running is not None:
            self._failed(config, self.running.exception(), now)
            self.running = None
        if now < self.retry_at:
            return
        topics = query.topics_of(self.members)
        missing = sorted(set(topics) - offsets_of_existing_topics(config, topics).keys())
        if missing:
            self._failed(config, f"no topic {', '.join(missing)} yet", now)
            return
        try:
            self.running = adopt_or_start(self.spark, config, self.members, every)
        except ViewCannotJoin as error:
            self._separate(config, error.view, str(error))
        except (LockstepError, AnalysisException) as error:
            # A problem of this query is no reason to stop the others.
            self._failed(config, error, now)

    def update_journal(self, config: "Settings") -> None:
        """Add the checkpoint's new files to its journal."""
        if self.running is not None:
            known = journal.digests(config, self.job) if self.journal is None else self.journal
            self.journal = journal.update(config, self.job, known)

    def count_state(self, spark: "SparkSession", config: "Settings") -> None:
        """Count the rows of the query's state. The micro-batches do not count them, because that would take them time."""
        try:
            self.state_rows = inspection.state_rows(spark, config, self.members)
        except (LockstepError, PySparkException) as error:
            # There is no state yet, or Spark has removed an old file meanwhile.
            log.info("%s: its state was not counted: %s", self.job, str(error).partition("\n")[0])

    def progress(self) -> list[Progress]:
        """The progress of each view, as Spark reports it of the query."""
        report = self.running.lastProgress if self.running is not None else None
        last = json.loads(report.json) if report else None
        return [
            parse(
                view.name,
                generation.number,
                last,
                {CONTRACTS[stream].topic for stream in view.streams},
                self.failures,
                self.error,
                self.state_rows.get(view.name),
            )
            for generation, view in self.members
        ]

    def _failed(self, config: "Settings", reason: object, now: float) -> None:
        pause = min(2.0**self.failures, LONGEST_PAUSE_SECONDS)
        self.failures, self.retry_at = self.failures + 1, now + pause
        failure = found_failure(str(reason))
        self.error = failure[1] if failure else str(reason).partition("\n")[0]
        log.error("%s: %s; the next try is in %.0f s", query.name(self.members), self.error, pause)
        for _, view in self.members:
            if failure and failure[0] == view.name and len(self.members) > 1:
                self._separate(config, view, self.error)

    def _separate(self, config: "Settings", view: View, reason: str) -> None:
        """Let the others go on without a view that has failed. It fails alone from now on."""
        generation = next(generation for generation, member in self.members if member is view)
        log.error("%s leaves the job %s, which goes on without it: %s", view.name, self.job, reason)
        separate(self.spark, config, generation, view, f"it cannot run with others: {reason}")


def run(config: "Settings", stopping: threading.Event, publish_seconds: float = PUBLISH_SECONDS) -> None:
    """Keep every view's query running until ``stopping`` is set. A query that fails does not affect the others.

    Args:
        publish_seconds: how often the queries' progress and the journals of their checkpoints are written.
    """
    with ExitStack() as stack:
        own = stack.enter_context(connect(config, "live"))
        heartbeat.report(config)
        jobs = Jobs(config, stack)
        if config.heartbeat_seconds:
            stack.enter_context(_beside(jobs.heartbeats().run, stopping))
        # A count takes about a second, so only one job is counted at each publication.
        turns = itertools.count()
        publish_at = time.monotonic() + publish_seconds
        while not stopping.is_set():
            try:
                jobs.supervise(own)
                handles = [*jobs.handles.values()]
                if handles and time.monotonic() >= publish_at:
                    for handle in handles:
                        handle.update_journal(config)
                    handles[next(turns) % len(handles)].count_state(own, config)
                    publish(own, config, [progress for handle in handles for progress in handle.progress()])
                    send_waiting(config)
                    publish_at = time.monotonic() + publish_seconds
            except psycopg2.OperationalError as error:
                log.error("the control database does not answer; the queries continue as they are: %s", error)
            stopping.wait(POLL_SECONDS)
        for handle in jobs.handles.values():
            if handle.running is not None:
                handle.stop()
                handle.update_journal(config)


@contextmanager
def _beside(work: Callable[[threading.Event], None], stopping: threading.Event) -> Iterator[None]:
    """Do the work in a thread until the block ends; it ends after ``stopping`` is set."""
    thread = threading.Thread(target=work, args=(stopping,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


class Jobs:
    """The jobs of the views that run, as the control database has them: each view may leave its job at any time."""

    def __init__(self, config: "Settings", stack: ExitStack) -> None:
        self.config, self.stack = config, stack
        self.views = chosen(config.views)
        self.handles: dict[Job, JobHandle] = {}

    def heartbeats(self) -> QuietPartitions:
        """The heartbeats for the topics of events that the views read."""
        contracts = [CONTRACTS[stream] for view in self.views for stream in view.streams]
        return QuietPartitions(self.config, sorted({c.topic for c in contracts if c.kind == "events"}))

    def supervise(self, spark: "SparkSession") -> None:
        """Start, stop and restart queries, so that each view runs in the job of its current generation, and nowhere else."""
        if not self.views:
            # A project without views: nothing else asks whether the server still answers.
            spark.sql("SELECT 1").collect()
            heartbeat.report(self.config)
        generations.share(self.config, [view for view in self.views if view.may_share])
        wanted: dict[Job, list[Member]] = {}
        for member in members_of(self.config, self.views):
            wanted.setdefault(member[0].job, []).append(member)
        # A view's next job waits for the end of its last one, so everything stops before anything starts.
        for job in self.handles.keys() - wanted.keys():
            self.handles.pop(job).stop()
        now = time.monotonic()
        for job, members in wanted.items():
            if job in self.handles:
                self.handles[job].run_only(members, now)
            else:
                for generation, view in members:
                    log.info("%s: generation %d runs in %s: %s", view.name, generation.number, job, generation.reason)
                session = self.stack.enter_context(connect(self.config, "live", session_of(self.config, job)))
                self.handles[job] = JobHandle(members, session)
        every = seconds_between_batches(len(self.handles), self.config.cores)
        for handle in self.handles.values():
            handle.supervise(self.config, now, every)
            heartbeat.report(self.config)


def main() -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two micro-batches."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(settings.load(), stopping)


if __name__ == "__main__":
    main()
