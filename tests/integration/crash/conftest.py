"""A stream with traffic, for tests that kill what works on it."""

import random
from collections.abc import Callable

import pytest
from tests.integration.crash.flow import Traffic, digest, recover, violations

from lockstep.contracts import Contract
from lockstep.settings import Settings
from lockstep.views import View


@pytest.fixture
def traffic(settings: Settings, stream: Contract) -> Traffic:
    seed = random.SystemRandom().randrange(2**32)
    print(f"traffic of seed {seed}")
    return Traffic(settings, stream, seed)


@pytest.fixture
def recovers(settings: Settings, stream: Contract, view: View, traffic: Traffic) -> Callable[[], None]:
    """Run the tasks again, as the scheduler would, and assert all invariants."""

    def check() -> None:
        recover(settings, stream, view)
        assert violations(settings, stream, view, traffic.sent) == []
        before = digest(settings, stream, view)
        recover(settings, stream, view)
        assert digest(settings, stream, view) == before, "I7: running again has changed something"

    return check
