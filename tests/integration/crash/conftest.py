"""Streams with traffic, for tests that kill the processes that work on them."""

import random
from collections.abc import Iterator

import pytest
from tests.integration.crash.flow import Traffic
from tests.integration.crash.scenarios import Scenario, new_scenario

from lockstep.contracts import Contract
from lockstep.settings import Settings
from lockstep.stack.stack import Stack


@pytest.fixture
def traffic(settings: Settings, stream: Contract) -> Traffic:
    """Traffic on the test's own stream."""
    return Traffic(settings, stream, random.SystemRandom().randrange(2**32))


@pytest.fixture(scope="module")
def scenario(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    """One stream for all failpoints of a module: each starts from what the ones before it have left."""
    with new_scenario(stack, tmp_path_factory.mktemp("scenario")) as own:
        yield own
