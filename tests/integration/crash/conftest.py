"""A stream with traffic, for tests that kill what works on it."""

import random
from pathlib import Path

import pytest
from tests.integration.crash.flow import Traffic
from tests.integration.crash.scenes import Scene

from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.settings import Settings
from lockstep.stack.stack import Stack


@pytest.fixture
def traffic(settings: Settings, stream: Contract) -> Traffic:
    seed = random.SystemRandom().randrange(2**32)
    print(f"traffic of seed {seed}")
    return Traffic(settings, stream, seed)


@pytest.fixture
def scene(stack: Stack, settings: Settings, stream: Contract, view: View, traffic: Traffic, tmp_path: Path) -> Scene:
    return Scene(settings, stack, stream, view, traffic, tmp_path)
