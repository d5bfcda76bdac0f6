"""A project outside of the checkout, run by the platform's wheel: from ``lockstep init`` to the rows that its views serve.

In a directory with a space in its name, and on a machine without Java. It is the first file of this folder, so that its stack is
gone when the demo's stack starts.
"""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.ports import PORTS, TRUSTED, free_ports
from tests.support.wheel import build

STREAM = "stream returns --column return_id:STRING --column returned_at:TIMESTAMP --column order_id:STRING"
STREAM += " --column refund:DECIMAL(12,2) --id return_id --time returned_at --key order_id"
# Until every layer has all records, and reconcile has compared the two: a minute on two idle cores.
PATIENCE = 420


@dataclass
class Elsewhere:
    """An environment with the wheel, and a directory in which its commands run."""

    env: dict[str, str]
    cwd: Path

    def run(self, *command: str) -> str:
        """What the command prints."""
        done = subprocess.run(command, cwd=self.cwd, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
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


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    """An empty project, whose stack is removed in the end."""
    root = tmp_path_factory.mktemp("elsewhere")
    outside = Elsewhere(environment(root / "venv"), root)
    outside.run("lockstep", "init", "my shop/acme")
    project = Elsewhere(outside.env, root / "my shop" / "acme")
    try:
        yield project
    finally:
        project.run("lockstep", "reset", "--yes")


def test_the_platform_is_the_wheels_and_there_is_no_shop_and_no_java(acme):
    code = "import lockstep, shutil; from importlib.util import find_spec; "
    code += "print(lockstep.__file__, find_spec('shop'), shutil.which('java'))"
    location, shop, java = acme.run("python", "-c", code).rsplit(maxsplit=2)
    assert Path(location).is_relative_to(acme.cwd.parents[1] / "venv")
    assert (shop, java) == ("None", "None")


def test_a_stream_and_two_views_are_served_as_their_oracles_say(acme):
    acme.run("lockstep", "new", *STREAM.split())
    acme.run("lockstep", "new", "view", "returns_per_minute", "--input", "returns")
    acme.run("lockstep", "new", "view", "returns_numbered", "--input", "returns", "--keyed")
    acme.run("lockstep", "up")
    drive = Path(__file__).parent / "drive_project.py"
    acme.run("python", str(drive), str(PATIENCE))
    status = json.loads(acme.run("lockstep", "status", "--json"))
    verdicts = {view["name"]: view["verdict"] for view in status["views"]}
    assert verdicts == {"returns_per_minute": "equal", "returns_numbered": "equal"}
    acme.run("lockstep", "down")
