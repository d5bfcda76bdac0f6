"""A copy of this repository's own project, and an empty project, in which anything may be made."""

import shutil

import pytest
from tests.support.paths import CHECKOUT

from lockstep.new import init
from lockstep.settings import Settings

TREES = ("spark", "expectations", "dbt", "tests")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of a copy: sources, suites, dbt models and tests, without data and caches."""
    root = tmp_path_factory.mktemp("project")
    for tree in TREES:
        shutil.copytree(CHECKOUT / tree, root / tree, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(CHECKOUT / "pyproject.toml", root)
    return Settings(project=root)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of an empty project, in a directory with a space in its name."""
    root = tmp_path_factory.mktemp("work") / "my shop" / "acme"
    init.project(root)
    return Settings(project=root)
