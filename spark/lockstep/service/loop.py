"""Keep every job running, and publish the progress of the views, until the service is stopped."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import psycopg2

from lockstep import heartbeat
from lockstep.catalog import connect
from lockstep.live.progress import publish
from lockstep.service.job import JobHandle
from lockstep.service.jobs import Jobs
from lockstep.sinks.alerts import send_waiting

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
# How often the queries and their generations are looked at: as soon as an operator expects to see what a reset does.
POLL_SECONDS = 2
# Each publication is a commit to a Delta table, and lists all files of the checkpoints. The files of the last seconds, which the
# journal does not have yet, are still verified by their checksums.
PUBLISH_SECONDS = 20.0


def run(
    config: "Settings",
    stopping: threading.Event,
    publish_seconds: float = PUBLISH_SECONDS,
    reloading: threading.Event | None = None,
) -> None:
    """Keep every view's query running until ``stopping`` is set. A query that fails does not affect the others.

    Args:
        publish_seconds: how often the queries' progress and the journals of their checkpoints are written.
        reloading: if it is set at the end, the queries are left running for the next service.
    """
    with ExitStack() as stack:
        own = stack.enter_context(connect(config, "live"))
        heartbeat.report(config)
        jobs = Jobs(config, stack)
        stack.enter_context(beside(jobs.watch.run, stopping))
        if config.heartbeat_seconds:
            stack.enter_context(beside(jobs.heartbeats().run, stopping))
        publish_at = time.monotonic() + publish_seconds
        while not stopping.is_set():
            try:
                jobs.supervise(own)
                handles = [*jobs.handles.values()]
                now = time.monotonic()
                if handles and now >= publish_at:
                    for handle in handles:
                        if handle.running is not None:
                            handle.update_journal(config)
                    if (due := next_to_count(handles, now)) is not None:
                        due.count_state(own, config, now)
                    publish(own, config, [progress for handle in handles for progress in handle.progress()])
                    send_waiting(config)
                    publish_at = time.monotonic() + publish_seconds
            except psycopg2.OperationalError as error:
                log.error("the control database does not answer; the queries continue as they are: %s", error)
            stopping.wait(POLL_SECONDS)
        for handle in jobs.handles.values():
            if handle.running is not None:
                if reloading is None or not reloading.is_set():
                    handle.stop()
                handle.update_journal(config)


def next_to_count(handles: Iterable[JobHandle], now: float) -> JobHandle | None:
    """The job whose state shall be counted, if any: the one for which it was time first. Pure.

    Args:
        now: on the monotonic clock.
    """
    first = min(handles, key=lambda handle: handle.count_at)
    return first if first.count_at <= now else None


@contextmanager
def beside(work: Callable[[threading.Event], None], stopping: threading.Event) -> Iterator[None]:
    """Do the work in a thread until the block ends; it ends after ``stopping`` is set."""
    thread = threading.Thread(target=work, args=(stopping,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
