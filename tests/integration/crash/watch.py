"""Waiting for the file that marks a failpoint, closely enough to be there before the next one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

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
