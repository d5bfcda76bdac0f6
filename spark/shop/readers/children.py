"""Readers as processes of their own, which can be killed, and what they told."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.errors import LockstepError


class DemoFailed(LockstepError):
    """A demonstration has not come to what it was to show."""


def die_with_parent() -> None:
    """End this process when the one that started it is gone, however it went: its end of our standard input is closed then."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@dataclass
class Children:
    """Child processes by name, and every line (a JSON object) that they told so far. They end with the block."""

    module: str
    told: list[dict[str, Any]] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self, name: str, *arguments: str) -> None:
        """Start ``python -m <module> <arguments>`` under a name."""
        command = [sys.executable, "-m", self.module, *arguments]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._running[name] = child
        thread = threading.Thread(target=self._listen, args=(child,))
        thread.start()
        self._threads.append(thread)

    def kill(self, name: str) -> None:
        """``kill -9``: no goodbye, no last commit."""
        child = self._running.pop(name)
        child.kill()
        child.wait()

    def of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """What was told of an event, with these fields."""
        wanted = {"event": event} | fields
        return [line for line in [*self.told] if wanted.items() <= line.items()]

    def until(self, shown: Callable[[], bool], what: str, seconds: float = 60) -> None:
        """Wait for it.

        Raises:
            DemoFailed: it has not come within that time.
        """
        patiently = Retrying(
            stop=stop_after_delay(seconds), wait=wait_fixed(0.05), retry=retry_if_result(lambda yes: not yes)
        )

        def now() -> bool:
            if ended := [name for name, child in self._running.items() if child.poll() is not None]:
                raise DemoFailed(f"{', '.join(ended)} ended by itself before this came: {what}. See its words above.")
            return shown()

        try:
            patiently(now)
        except RetryError as error:
            last = "\n".join(map(str, self.told[-5:]))
            raise DemoFailed(
                f"waited {seconds:g} s for this, and it did not come: {what}. The last words:\n{last}"
            ) from error

    def _listen(self, child: subprocess.Popen[str]) -> None:
        assert child.stdout is not None  # noqa: S101
        for line in child.stdout:
            self.told.append(json.loads(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in [*self._running]:
            self.kill(name)
        for thread in self._threads:
            thread.join()
