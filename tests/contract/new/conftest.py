"""A copy of the project, in which anything may be made."""

import shutil
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT

TREES = ("spark/lockstep", "expectations", "dbt/models", "tests")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, suites, dbt models and tests, without data and caches."""
    root = tmp_path_factory.mktemp("project")
    for tree in TREES:
        shutil.copytree(CHECKOUT / tree, root / tree, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(CHECKOUT / "pyproject.toml", root)
    return root
