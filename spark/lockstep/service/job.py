"""One job: start its query, adopt the one that still runs, and keep it running."""

import json
import logging
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, PySparkException, UnknownException
from pyspark.errors.exceptions.connect import SparkException

from lockstep.checkpoints import inspection, journal
from lockstep.checkpoints.compatible import changed
from lockstep.checkpoints.forks import separate
from lockstep.checkpoints.journal import FileDigest
from lockstep.checkpoints.prepare import ViewCannotJoin, prepare_start
from lockstep.checkpoints.retention import lost_records
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.machine import found_failure
from lockstep.errors import LockstepError
from lockstep.ingest.continuity import changed_logs
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import generations, query
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.generation import Generation, Job
from lockstep.live.progress import Progress, parse, rows_dropped
from lockstep.live.sink import Member
from lockstep.service.failures import cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
# The pause before a failed query's next try doubles up to this. A query runs again soon after the cause of its failure is gone.
LONGEST_PAUSE_SECONDS = 30.0
# A count loads a copy of the job's state into the server and reads all of it. At 1,000 records/s, one job at each publication
# took a quarter of the CPU of Spark's tasks.
COUNT_SECONDS = 600.0
# How Spark's messages end that tell of values, such as a division by zero: the class of SQL's data exceptions.
_DATA_EXCEPTION = "SQLSTATE: 22"
# A property of a job's session, which the next service finds there with the query.
_FOR_HIGH_LOAD = "spark.lockstep.live.forHighLoad"


def session_of(config: "Settings", job: Job) -> str:
    """The id of the session of a job's query: the number of state partitions is a setting of the session.

    All the generations of a view that has a job of its own have one session, where each finds and stops the one before.
    """
    name = str(job) if job.is_shared else job.name
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{config.lake}#live/{name}"))


def adopt_or_start(
    spark: "SparkSession", config: "Settings", members: Sequence[Member], every: float, for_high_load: bool = False
) -> "StreamingQuery":
    """The job's query: the one that still runs in its session, or a new one from its checkpoint.

    One that runs definitions of before is stopped, and started again.

    Args:
        every: the seconds between two micro-batches of a new one.
        for_high_load: whether that is for a high load.

    Raises:
        ViewCannotJoin: one of several views keeps the job from starting.
        LockstepError: the query may not start; the message says why.
    """
    job, name = members[0][0].job, query.name(members)
    for running in spark.streams.active:
        same = running.name == name and running.id == Checkpoint(job.location(config)).id()
        if same and not changed(config, members):
            log.info("%s: the query still runs and continues", name)
            return running
        log.info("%s: the query %s that runs is of before, so it is stopped", name, running.name)
        running.stop()
    log.info("%s: starting from the checkpoint %s, with a micro-batch every %.1f s", name, job, every)
    spark.conf.set(_FOR_HIGH_LOAD, str(for_high_load).lower())
    return query.start(spark, config, prepare_start(spark, config, members), every)


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
        count_at: when they shall be counted next (monotonic clock).
        dropped_rows: how many rows Spark has dropped as too late, as far as ``reported_at``.
        reported_at: the time of the newest report that was read, as Spark writes it.
        for_high_load: whether the query was started for a high load; None: it is not known.
    """

    members: Sequence[Member]
    spark: "SparkSession"
    running: "StreamingQuery | None" = None
    failures: int = 0
    retry_at: float = 0.0
    error: str | None = None
    journal: Mapping[str, FileDigest] | None = None
    state_rows: Mapping[str, int] = field(default_factory=dict)
    count_at: float = -math.inf
    dropped_rows: int = 0
    reported_at: str = ""
    for_high_load: bool | None = None

    @property
    def job(self) -> Job:
        """The job, whose members may change."""
        return self.members[0][0].job

    @property
    def is_keyed(self) -> bool:
        """Whether its views are keyed: those and views over windows never share a job."""
        return self.members[0][1].has_machines

    def run_only(self, members: Sequence[Member], now: float) -> None:
        """Go on with these members: a view that has left the job has a generation of its own."""
        if members != self.members:
            self.stop()
            self.members, self.retry_at = members, now

    def stop(self) -> None:
        """Stop the query between two micro-batches, if it runs."""
        if self.running is not None:
            self.running.stop()
            self._read_reports()
            self.running = None

    def supervise(
        self,
        config: "Settings",
        now: float,
        every: float,
        changed: "Mapping[str, LockstepError] | None" = None,
        is_high: bool | None = None,
    ) -> None:
        """Start the query if it does not run and its pause is over, with a micro-batch every so many seconds. Log why it stopped.

        Spark cannot change the interval of a query that runs. So it is stopped, and started again, where the load has changed.

        A query is stopped, and not started, while one of its topics is another one than bronze has read.

        An error that is not the query's own, such as a lost server, is raised.

        Args:
            changed: by topic, what has become of those that have changed while queries run.
            is_high: whether the interval is one for a high load; None: the load is not known yet.
        """
        topics = query.topics_of(self.members)
        if self.running is not None and (
            lost := [error for topic, error in (changed or {}).items() if topic in topics]
        ):
            self.stop()
            self._failed(config, lost[0], now)
            return
        if self.running is not None and self.running.isActive:
            # A start alone proves nothing: the failures are forgotten only after a batch.
            if self.failures and self.running.lastProgress is not None:
                self.failures, self.error = 0, None
            if is_high is None or self.for_high_load in (None, is_high):
                return
            log.info("%s: the load is %s: a micro-batch every %.1f s", self.job, "high" if is_high else "low", every)
            self.stop()
        elif self.running is not None:
            self._failed(config, self.running.exception(), now)
            self.running = None
        if now < self.retry_at:
            return
        logs = offsets_of_existing_topics(config, topics)
        if missing := sorted(set(topics) - logs.keys()):
            self._failed(config, f"no topic {', '.join(missing)} yet, or none that this account may see", now)
            return
        if lost := [*changed_logs(config, [CONTRACTS[s] for s in query.streams_of(self.members)]).values()]:
            for running in self.spark.streams.active:
                log.info("%s: the query %s still runs, and is stopped", self.job, running.name)
                running.stop()
            self._failed(config, lost[0], now)
            return
        if taken := lost_records(config, self.members, logs):
            self._failed(config, taken, now)
            return
        try:
            self.running = adopt_or_start(self.spark, config, self.members, every, is_high is True)
            self.for_high_load = self.spark.conf.get(_FOR_HIGH_LOAD, "false") == "true"
        except ViewCannotJoin as error:
            self._separate(config, error.view, str(error))
        except (LockstepError, AnalysisException, SparkException, UnknownException) as error:
            # A problem of this query is no reason to stop the others. The last two are what the server says of itself, such as
            # that the process of its sink did not start.
            self._failed(config, error, now)

    def update_journal(self, config: "Settings") -> None:
        """Add the checkpoint's new files to its journal. The query runs, or has been stopped just now."""
        known = journal.digests(config, self.job) if self.journal is None else self.journal
        self.journal = journal.update(config, self.job, known)

    def count_state(self, spark: "SparkSession", config: "Settings", now: float) -> None:
        """Count the rows of the query's state. The micro-batches do not count them, because that would take them time."""
        try:
            self.state_rows = inspection.state_rows(spark, config, self.members)
            self.count_at = now + COUNT_SECONDS
        except (LockstepError, PySparkException) as error:
            # There is no state yet, or Spark has removed an old file meanwhile. Jobs that have waited longer come first.
            self.count_at = now
            log.info("%s: its state was not counted: %s", self.job, str(error).partition("\n")[0])

    def progress(self) -> list[Progress]:
        """The progress of each view, as Spark reports it of the query."""
        last = self._read_reports()
        return [
            parse(
                view.name,
                generation.number,
                last,
                {CONTRACTS[stream].topic for stream in view.streams},
                self.failures,
                self.error,
                self.state_rows.get(view.name),
                self.dropped_rows,
            )
            for generation, view in self.members
        ]

    def _read_reports(self) -> dict[str, Any] | None:
        """Read what Spark reports of the query's last micro-batches; the newest of these reports."""
        # Not only the last one: what a batch has dropped is in no later report.
        reports = [json.loads(report.json) for report in self.running.recentProgress] if self.running else []
        for report in reports:
            if report["timestamp"] > self.reported_at:
                self.dropped_rows += rows_dropped(report)
                self.reported_at = report["timestamp"]
        return reports[-1] if reports else None

    def _failed(self, config: "Settings", reason: object, now: float) -> None:
        pause = min(2.0**self.failures, LONGEST_PAUSE_SECONDS)
        self.failures, self.retry_at = self.failures + 1, now + pause
        failure = found_failure(str(reason))
        self.error = failure[1] if failure else cause(str(reason))
        log.error("%s: %s; the next try is in %.0f s", query.name(self.members), self.error, pause)
        # Spark does not say of which view the measure is that cannot be computed.
        fails_on_data = _DATA_EXCEPTION in str(reason)
        for _, view in self.members if len(self.members) > 1 else ():
            if (fails_on_data and view.grouping) or (failure and failure[0] == view.name):
                self._separate(config, view, self.error)

    def _separate(self, config: "Settings", view: View, reason: str) -> None:
        """Let the others go on without a view that has failed. It fails alone from now on."""
        generation = next(generation for generation, member in self.members if member is view)
        log.error("%s leaves the job %s, which goes on without it: %s", view.name, self.job, reason)
        separate(self.spark, config, generation, view, f"it cannot run with others: {reason}")
