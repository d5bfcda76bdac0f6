"""The live service in a thread of the test, and jobs without it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from lockstep import service
from lockstep.catalog import connect
from lockstep.definition import View
from lockstep.live import generations
from lockstep.live.generation import Job
from lockstep.service.loop import beside
from lockstep.settings import Settings


@contextmanager
def serving(settings: Settings, *views: View, publish_seconds: float = 1.0, reloads: bool = False) -> Iterator[None]:
    """The service, for these views alone. If it ``reloads``, it leaves their queries running in the end."""
    config, reloading = settings.model_copy(update={"views": ",".join(view.name for view in views)}), threading.Event()
    with beside(lambda stopping: service.run(config, stopping, publish_seconds, reloading), threading.Event()):
        yield
        if reloads:
            reloading.set()


def run(settings: Settings, *views: View) -> None:
    """Run a job until it has read everything."""
    with connect(settings, "live") as own:
        running = service.start(own, settings, *views)
        try:
            running.processAllAvailable()
        finally:
            running.stop()


def job_of(settings: Settings, view: View) -> Job:
    """The job that runs a view."""
    return generations.get(settings, view.name).job


eventually = retry(
    wait=wait_fixed(0.5),
    stop=stop_after_delay(90),
    # The tables are not there at first.
    retry=retry_if_exception_type((AssertionError, KeyError, AnalysisException)),
    reraise=True,
)
