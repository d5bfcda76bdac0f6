"""The live service in a thread of the test."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lockstep import service
from lockstep.definition import View
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
