"""The jobs of the views that run: which there are, and that each runs as it should."""

import logging
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from lockstep import heartbeat
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, of_kind
from lockstep.definition.registry import chosen
from lockstep.live import generations, progress
from lockstep.live.generation import Generation, Job
from lockstep.live.quiet_partitions import QuietPartitions
from lockstep.live.sink import Member
from lockstep.service.job import JobHandle, members_of, session_of
from lockstep.service.log_watch import LogWatch
from lockstep.service.pace import seconds_between_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.definition import View
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")


def removed_jobs(config: "Settings", views: "Iterable[View]") -> set[Job]:
    """The jobs of the views that the last service ran, and that none of these views has: they were removed, or are not chosen."""
    current = generations.all_current(config)

    def job_of(name: str) -> Job:
        return current.get(name, Generation(name)).job

    return {job_of(name) for name in progress.latest(config)} - {job_of(view.name) for view in views}


class Jobs:
    """The jobs of the views that run, as the control database has them: each view may leave its job at any time."""

    def __init__(self, config: "Settings", stack: ExitStack) -> None:
        self.config, self.stack = config, stack
        self.views = chosen(config.views)
        self.handles: dict[Job, JobHandle] = {}
        self.watch = LogWatch(config, self._contracts())
        generations.share(config, [view for view in self.views if view.may_share])
        # While no service ran, all views may have left a shared job, and views may have been removed.
        shared = {job for job in generations.earlier_jobs(config) if job.is_shared}
        for job in shared | removed_jobs(config, self.views):
            with connect(config, "live", session_of(config, job)) as spark:
                for running in spark.streams.active:
                    log.info("%s: no view runs in this job any more, so it is stopped", job)
                    running.stop()

    def heartbeats(self) -> QuietPartitions:
        """The heartbeats for the topics of events that the views read."""
        return QuietPartitions(self.config, sorted({c.topic for c in of_kind("events", self._streams()).values()}))

    def _contracts(self) -> "list[Contract]":
        return [CONTRACTS[stream] for stream in self._streams()]

    def _streams(self) -> list[str]:
        return sorted({stream for view in self.views for stream in view.streams})

    def supervise(self, spark: "SparkSession") -> None:
        """Start, stop and restart queries, so that each view runs in the job of its current generation, and nowhere else."""
        if not self.views:
            # A project without views: nothing else asks whether the server still answers.
            spark.sql("SELECT 1").collect()
            heartbeat.report(self.config)
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
        # Where each job has a core, none waits for another.
        is_high = self.watch.load.is_high if len(self.handles) > self.config.cores else False
        any_keyed = any(handle.is_keyed for handle in self.handles.values())
        for handle in self.handles.values():
            beside_keyed = any_keyed and not handle.is_keyed
            every = seconds_between_batches(len(self.handles), self.config.cores, beside_keyed, is_high is True)
            handle.supervise(self.config, now, every, self.watch.changed, is_high)
            heartbeat.report(self.config)
