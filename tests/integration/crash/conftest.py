"""Streams with traffic, for tests that kill what works on them."""

import random
from collections.abc import Iterator

import pytest
from tests.integration.crash.flow import Traffic
from tests.integration.crash.scenes import Scene, staged

from lockstep.contracts import Contract
from lockstep.settings import Settings
from lockstep.stack.stack import Stack


@pytest.fixture
def traffic(settings: Settings, stream: Contract) -> Traffic:
    """Traffic on the test's own stream."""
    return Traffic(settings, stream, random.SystemRandom().randrange(2**32))


@pytest.fixture(scope="module")
def scene(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """One stream for all failpoints of a module: each finds what the ones before it have left."""
    with staged(stack, tmp_path_factory.mktemp("scene")) as one:
        yield one
