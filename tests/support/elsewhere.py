"""A project outside of the checkout, run by the platform's wheel, in a directory with a space in its name."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.support.ports import PORTS, TRUSTED, free_ports
from tests.support.wheel import build

# What `lockstep new` needs for a stream of parcels that come back.
STREAM = "stream returns --column return_id:STRING --column returned_at:TIMESTAMP --column order_id:STRING"
STREAM += " --column refund:DECIMAL(12,2) --id return_id --time returned_at --key order_id"


@dataclass
class Elsewhere:
    """An environment with the wheel, and a directory in which its commands run."""

    env: dict[str, str]
    cwd: Path

    def run(self, *command: str, code: int = 0, given: str = "") -> str:
        """What the command prints; ``given`` is its input."""
        done = subprocess.run(command, cwd=self.cwd, env=self.env, input=given, capture_output=True, text=True)
        assert done.returncode == code, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


def programs_but_java(folder: Path) -> Path:
    """A folder with links to all programs of PATH except Java's."""
    folder.mkdir()
    for directory in map(Path, os.environ["PATH"].split(os.pathsep)):
        # A user may have folders in PATH that only another user can read.
        for program in directory.iterdir() if os.access(directory, os.R_OK | os.X_OK) else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The variables of a new virtual environment that has the wheel and, of the packages of this one, those of the lock.

    The packages are not copied: a .pth file names their folder. Python does not read the .pth files of that folder, so
    that the editable install of this checkout, which is one, is not in the new environment.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    paths = sysconfig.get_paths("venv", vars={"base": str(folder), "platbase": str(folder)})
    Path(paths["purelib"], "packages.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    install = [sys.executable, "-m", "uv", "pip", "install", "-q", "--offline", "--no-deps"]
    subprocess.run([*install, "--python", str(folder / "bin" / "python"), str(build(folder / "wheel"))], check=True)
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("LOCKSTEP_", "PYTHON", "VIRTUAL_ENV", "JAVA_HOME"))
    }
    kept["LOCKSTEP_CACHE"] = os.environ.get("LOCKSTEP_CACHE", "~/.cache/lockstep")
    ports = {f"LOCKSTEP_{name.upper()}": str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
    path = f"{folder / 'bin'}{os.pathsep}{programs_but_java(folder / 'programs')}"
    return kept | ports | {"PATH": path, "JDK_JAVA_OPTIONS": TRUSTED}


@contextmanager
def project_in(root: Path) -> Iterator[Elsewhere]:
    """An empty project, whose stack is removed in the end."""
    outside = Elsewhere(environment(root / "venv"), root)
    outside.run("lockstep", "init", "my shop/acme")
    project = Elsewhere(outside.env, root / "my shop" / "acme")
    try:
        yield project
    finally:
        project.run("lockstep", "reset", "--yes")


def produce(project: Elsewhere, topic: str, events: list[dict[str, Any]], key: str) -> None:
    """Send events by Kafka's own console producer."""
    lines = "".join(f"{event[key]}|{json.dumps(event)}\n" for event in events)
    options = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=|")
    project.run("lockstep", "kafka", "console-producer", "--topic", topic, *options, given=lines)


def now() -> str:
    """The time, as an event has it."""
    return f"{datetime.now(UTC):%FT%TZ}"
