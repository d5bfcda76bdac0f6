"""A real schema registry for the tests of this folder."""

from collections.abc import Iterator

import pytest
from tests.support.registry import Door, Registry, running

from lockstep.settings import Settings


@pytest.fixture(scope="session")
def registry(settings: Settings) -> Iterator[Registry]:
    with running(settings) as found:
        yield found


@pytest.fixture
def door(registry: Registry) -> Door:
    """An address of the registry, which is closed at first."""
    return registry.door()
