"""A wall clock for the processes of a stack, which a test sets while they run."""

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest


class Clock:
    """The machine's clock, moved by what the test says; without a C compiler, the test is skipped.

    Args:
        folder: where its library is built.
    """

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("a clock that jumps needs a C compiler")
        self._library, self._file = folder / "shifted.so", folder / "shift"
        source = Path(__file__).with_name("shifted.c")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", self._library, source], check=True)
        self._file.write_bytes(bytes(8))
        self._shift = timedelta(0)

    @property
    def env(self) -> dict[str, str]:
        """The variables of a process that reads this clock."""
        return {"LD_PRELOAD": str(self._library), "SHIFTED_CLOCK": str(self._file)}

    def now(self) -> datetime:
        """What it shows (UTC)."""
        return datetime.now(UTC) + self._shift

    def set(self, shift: timedelta) -> None:
        """Let it jump: from now on it shows the machine's time and this."""
        nanoseconds = shift // timedelta(microseconds=1) * 1000
        # In place: the processes have mapped the file.
        with self._file.open("r+b") as file:
            file.write(nanoseconds.to_bytes(8, "little", signed=True))
        self._shift = shift
