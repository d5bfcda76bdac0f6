"""The wheel of this checkout, built offline with the build backend of the environment."""

import subprocess
import sys
from pathlib import Path

from tests.support.paths import CHECKOUT


def build(directory: Path) -> Path:
    """Build the wheel into the directory, which is made, and return its file."""
    directory.mkdir(parents=True, exist_ok=True)
    code = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(directory)]
    built = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return directory / built.stdout.split()[-1]
