"""A stack of its own: one that may be killed, and whose lake is small when a server starts anew."""

from collections.abc import Iterator

import pytest
from tests.ports import started

from lockstep.stack.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """PostgreSQL, Kafka and Spark, for the tests of this folder alone."""
    with started(tmp_path_factory.mktemp("home")) as own:
        yield own
