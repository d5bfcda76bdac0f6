"""One look after another: gather the status, publish it as metrics, and send notices of what has changed."""

import logging
import os
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server

from lockstep import project
from lockstep.monitor.metrics import StatusCollector
from lockstep.monitor.notify import deliver, queued
from lockstep.stack.stack import Stack
from lockstep.status import open_problems
from lockstep.status.gather import gather
from lockstep.status.model import Status
from lockstep.status.open_problems import Memory

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.monitor")
# A look costs about half a second of a core, most of it in Airflow's API server.
LOOK_SECONDS = 15.0
# Nobody is told of what does not answer while the stack starts, unless it takes longer than this.
SETTLING_SECONDS = 180.0


def run(settings: "Settings", stopping: threading.Event, settled: bool = False) -> bool:
    """Look until ``stopping`` is set, or the project's code is changed. What does not answer is a problem, and stops nothing.

    Args:
        settled: the stack has started already.

    Returns:
        Whether it must begin again: Python keeps the contracts and views that it has imported.
    """
    collector = StatusCollector()
    registry = CollectorRegistry()
    registry.register(collector)
    server, thread = start_http_server(settings.metrics_port, settings.listen, registry)
    began, sources = time.monotonic(), project.sources()
    # supervisord sets this variable for the processes that it starts.
    supervised = "SUPERVISOR_PROCESS_NAME" in os.environ
    try:
        while not stopping.is_set():
            if project.sources() != sources:
                log.info("the project's code is changed, so it is loaded again")
                return True
            stack = Stack(settings)
            services = stack.health() if supervised else stack.answers()
            status = gather(stack.settings, {name: health.state for name, health in services.items()})
            collector.publish(status)
            settled = settled or status.ok or time.monotonic() - began > SETTLING_SECONDS
            if settled:
                _remember(stack.settings, status)
            if supervised:
                stack.start_failed(log.info)
            stopping.wait(LOOK_SECONDS)
        return False
    finally:
        server.shutdown()
        thread.join()


def _remember(settings: "Settings", status: Status) -> None:
    before = open_problems.load(settings)
    opened, notice = open_problems.look(before.open, status.problems, datetime.now(UTC))
    for line in notice.text.splitlines():
        log.info(line)
    queues = queued(settings, before.unsent, notice)
    # Before they are sent: a monitor that is killed meanwhile sends them when it runs again.
    open_problems.save(settings, Memory(opened, queues))
    if queues:
        open_problems.save(settings, Memory(opened, deliver(settings, queues)))
