"""Child processes that run a reader: they can be killed, and report on their standard output."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.errors import LockstepError


class DemonstrationFailed(LockstepError):
    """A demonstration has not reached what it was to show."""


@dataclass
class ChildProcesses:
    """Child processes by name, and their reports: each line of their output is a JSON object. They end with the block."""

    module: str
    reports: list[dict[str, Any]] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, name: str, *arguments: str) -> None:
        """Start ``python -m <module> <arguments>`` under a name."""
        command = [sys.executable, "-m", self.module, *arguments]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._running[name] = child
        thread = threading.Thread(target=self._listen, args=(child,))
        thread.start()
        self._threads.append(thread)

    def kill(self, name: str) -> None:
        """Kill a process with ``kill -9``: it commits nothing more."""
        child = self._running.pop(name)
        child.kill()
        child.wait()

    def reports_of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """The reports of this event that have these fields."""
        wanted = {"event": event} | fields
        return [line for line in [*self.reports] if wanted.items() <= line.items()]

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait until the condition holds; ``what`` names it.

        Raises:
            DemonstrationFailed: it did not hold in time, or a process has ended.
        """
        retrying = Retrying(
            stop=stop_after_delay(seconds), wait=wait_fixed(0.05), retry=retry_if_result(lambda yes: not yes)
        )

        def check() -> bool:
            if ended := [name for name, child in self._running.items() if child.poll() is not None]:
                raise DemonstrationFailed(
                    f"{', '.join(ended)} ended by itself before this held: {what}. See its output above."
                )
            return condition()

        try:
            retrying(check)
        except RetryError as error:
            last = "\n".join(map(str, self.reports[-5:]))
            raise DemonstrationFailed(
                f"this did not hold within {seconds:g} s: {what}. The last reports:\n{last}"
            ) from error

    def _listen(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None  # noqa: S101
        for line in child.stdout:
            self.reports.append(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in [*self._running]:
            self.kill(name)
        for thread in self._threads:
            thread.join()
