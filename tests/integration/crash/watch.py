"""Waiting for the file that marks a failpoint, closely enough to be there before the next one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil

Found = TypeVar("Found")


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


def freeze_when(process: psutil.Process, marked: Callable[[], Any], within: float) -> None:
    """Freeze the process at a moment when ``marked`` is true: it still is while the process is frozen."""

    def frozen() -> bool:
        if not marked():
            return False
        process.suspend()
        if marked():
            return True
        process.resume()
        return False

    until(frozen, within)
