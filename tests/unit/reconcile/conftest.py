"""What the tests of views of the simulation share."""

from collections.abc import Iterator

import pytest
from tests.support.simulation.streams import CONTRACTS

from lockstep import contracts


@pytest.fixture(scope="module")
def simulated_contracts() -> Iterator[None]:
    """By the streams that a view reads, it is known whether it upserts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contracts.CONTRACTS, "_loaded", CONTRACTS)
        yield
