"""Send notices with Airflow's notifiers. Each runs in a process of its own: Airflow takes 300 MB, and notices are seldom."""

import logging
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from lockstep.stack.airflow_services import configuration
from lockstep.stack.services import inherited
from lockstep.status.open_problems import Notice, Unsent

if TYPE_CHECKING:
    from lockstep.settings import Notifier, Settings

log = logging.getLogger("lockstep.monitor")
# A mail server that is slow answers within this.
_TIMEOUT_SECONDS = 60
# A notifier that never works must not fill the memory.
_MOST_UNSENT = 100
NOTICE = TypeAdapter(Notice)


def name_of(notifier: "Notifier", index: int) -> str:
    """The name of a notifier of the settings: its place, from 1 on, and its class."""
    return f"{index + 1} {notifier.kind}".rstrip()


def queued(settings: "Settings", unsent: Mapping[str, Unsent], notice: Notice) -> dict[str, Unsent]:
    """What each notifier of the settings has to send: what it could not send before, and then this notice."""
    queues = {}
    for index, notifier in enumerate(settings.notifiers):
        name = name_of(notifier, index)
        before = unsent.get(name, Unsent((), ""))
        if notices := (*before.notices, *([notice] if notice else [])):
            queues[name] = replace(before, notices=notices[-_MOST_UNSENT:])
    return queues


def deliver(settings: "Settings", queues: Mapping[str, Unsent]) -> dict[str, Unsent]:
    """Send what is queued. A notifier that fails stops no other.

    Returns:
        What each could not send.
    """
    left = {}
    for index, notifier in enumerate(settings.notifiers):
        name = name_of(notifier, index)
        waiting, error = [*queues[name].notices] if name in queues else [], ""
        while waiting and not (error := _send(settings, index, waiting[0])):
            waiting.pop(0)
        if waiting:
            log.error("%s could not send %d notices: %s", name, len(waiting), error)
            left[name] = Unsent(tuple(waiting), error)
    return left


def _send(settings: "Settings", index: int, notice: Notice) -> str:
    """Send the notice with one notifier; why that failed, or empty."""
    env = inherited(settings) | configuration(settings)
    command = [sys.executable, "-m", "lockstep.monitor.send", str(index)]
    message = NOTICE.dump_json(notice)
    try:
        sender = subprocess.run(
            command, env=env, input=message, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_TIMEOUT_SECONDS} s"
    lines = sender.stderr.decode(errors="replace").strip().splitlines()
    return "" if sender.returncode == 0 else lines[-1] if lines else f"exit code {sender.returncode}"
