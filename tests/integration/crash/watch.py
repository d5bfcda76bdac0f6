"""Waiting for the file that marks a failpoint, closely enough to be there before the next one."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil

Found = TypeVar("Found")
# A cold server takes minutes until its first batch, where other tests share the machine with it.
COLD = 600.0


def appears(file: Path, within: float = 60) -> None:
    """Wait until the file exists."""
    until(file.exists, within)


def until(look: Callable[[], Found], within: float = 60) -> Found:
    """Look a thousand times a second until something is found."""
    end = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < end, f"nothing was seen in {within} s"
        time.sleep(0.001)
    return found


def freeze_when(process: psutil.Process, marked: Callable[[], Any], within: float) -> list[psutil.Process]:
    """Freeze the process and its children at a moment when ``marked`` is true: it still is while they are frozen.

    Returns:
        all that are frozen.
    """

    def frozen() -> list[psutil.Process]:
        if not marked():
            return []
        # The process first: to find its children takes longer than the moment may last.
        process.suspend()
        family = [process, *process.children(recursive=True)]
        _each(family[1:], psutil.Process.suspend)
        if marked():
            return family
        _each(family, psutil.Process.resume)
        return []

    return until(frozen, within)


def _each(processes: list[psutil.Process], do: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        # A worker may have ended meanwhile.
        with suppress(psutil.NoSuchProcess):
            do(process)
