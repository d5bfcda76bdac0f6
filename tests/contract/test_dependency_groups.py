"""Who writes contracts, views and their tests needs the base dependencies, and none of the platform's."""

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.support.paths import CHECKOUT

METADATA = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]

# The modules that the first argument names are as if they were not installed.
ONLY_BASE = """
import sys
from importlib.machinery import PathFinder

blocked = set(sys.argv[1].split(","))

class Filtered(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in blocked else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Filtered
"""


def closure(requirements: list[str]) -> set[str]:
    """The packages that these requirements bring, with all that they require."""
    found: set[tuple[str, str]] = set()
    todo = [Requirement(text) for text in requirements]
    while todo:
        required = todo.pop()
        for extra in ("", *required.extras):
            package = (canonicalize_name(required.name), extra)
            if package in found:
                continue
            found.add(package)
            try:
                texts = requires(required.name) or []
            except PackageNotFoundError:  # for another operating system, or another Python
                continue
            further = map(Requirement, texts)
            todo += [r for r in further if r.marker is None or r.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def outside(requirements: list[str]) -> str:
    """The installed modules that these requirements do not bring, comma-separated."""
    brought = closure(requirements)
    modules = packages_distributions().items()
    missing = {m for m, names in modules if not brought & {canonicalize_name(name) for name in names}}
    return ",".join(missing - {"lockstep", "shop"})


@pytest.fixture(scope="module")
def blocked() -> str:
    """The modules of the packages that the base dependencies do not bring, comma-separated."""
    return outside(METADATA["dependencies"])


def run(blocked: str, code: str, cwd: Path = CHECKOUT) -> str:
    """What the code prints in a Python that has the base dependencies only."""
    command = [sys.executable, "-c", ONLY_BASE + code, blocked]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    return done.stdout


def test_the_platforms_packages_are_blocked_here(blocked):
    assert {"airflow", "dbt", "great_expectations", "kafka", "deltalake", "faker"} <= set(blocked.split(","))


@pytest.mark.parametrize(
    "package", ["lockstep.contracts", "lockstep.definition", "lockstep.new", "shop.contracts", "shop.views"]
)
def test_every_module_that_is_needed_for_views_imports_without_the_platform(blocked, package):
    code = f"""
import importlib, pkgutil, {package} as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
    print(module.name)
"""
    assert run(blocked, code).count(f"{package}.") >= 1


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("new view --help", "--input"),
        ("new stream --help", "--column"),
        ("init --help", "--package"),
        ("--help", "new"),
    ],
)
def test_streams_and_views_are_made_without_the_platform(blocked, command, printed):
    code = f"""
from lockstep.cli.main import main
sys.argv = ["lockstep", *{command.split()}]
main()
"""
    assert printed in run(blocked, code)


def test_a_project_is_made_and_its_unit_tests_run_without_the_platform(blocked, tmp_path):
    command = """
from lockstep.cli.main import main
sys.argv = ["lockstep", *{}]
main()
"""
    run(blocked, command.format(["init", "acme"]), tmp_path)
    project = tmp_path / "acme"
    run(blocked, command.format(["new", "stream", "visits"]), project)
    for more in ([], ["--keyed"]):
        run(blocked, command.format(["new", "view", f"visits_{len(more)}", "--input", "visits", *more]), project)
    tools = outside([*METADATA["dependencies"], "pytest", "hypothesis"])
    # The plugins that are installed here, such as xdist, are not what a project needs.
    unit_tests = """
import os, pytest
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests/acme/unit"]))
"""
    assert "4 passed" in run(tools, unit_tests, project)
