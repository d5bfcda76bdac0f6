"""A copy of the project, in which anything may be made."""

import shutil
from pathlib import Path

import pytest

from lockstep.settings import PROJECT

TREES = ("spark/lockstep", "expectations", "dbt/models", "tests")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, suites, dbt models and tests, without data and caches."""
    root = tmp_path_factory.mktemp("project")
    for tree in TREES:
        shutil.copytree(PROJECT / tree, root / tree, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(PROJECT / "pyproject.toml", root)
    return root
