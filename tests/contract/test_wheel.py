"""The wheel is the platform: it has every file that the platform reads, and nothing of the shop or of the tests."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.support.paths import CHECKOUT
from tests.support.wheel import build

# Images are built from a checkout, and Compose files are checked there.
NOT_PACKAGED = ("infra/images/", "infra/compose-config/")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """A folder with the wheel's files, as ``site-packages`` has them."""
    folder = wheel.parent / "site"
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def tracked(*folders: str) -> set[str]:
    """The files of these folders that git does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {file for file in listed if (CHECKOUT / file).exists()}


def run(folder: Path, code: str) -> str:
    """What the code prints with the wheel's modules, outside of any project."""
    env = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"], "LOCKSTEP_PROJECT": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_it_has_the_platforms_files_and_no_others(installed: Path) -> None:
    expected = {f"lockstep/{file}" for file in tracked("dags", "infra") if not file.startswith(NOT_PACKAGED)}
    expected |= {file.removeprefix("spark/") for file in tracked("spark/lockstep")}
    found = {str(file.relative_to(installed)) for file in installed.rglob("*") if file.is_file()}
    assert {file for file in found if ".dist-info/" not in file} == expected


def test_its_modules_find_their_files_beside_them(installed: Path) -> None:
    code = "from lockstep.resources import resource; print(*map(resource, ('infra', 'dags', 'dbt')), sep='\\n')"
    assert run(installed, code).splitlines() == [f"{installed}/lockstep/{name}" for name in ("infra", "dags", "dbt")]


def test_the_same_code_has_the_same_version_in_a_wheel_and_in_a_checkout(installed: Path) -> None:
    code = "from lockstep.version import code_version; print(code_version())"
    assert run(installed, code) == run(CHECKOUT / "spark", code)
