"""A stack of its own, whose services may be killed."""

from collections.abc import Iterator

import pytest
from tests.support.ports import SHORT_LIVED, started

from lockstep.stack.stack import Stack


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with started(tmp_path_factory.mktemp("home"), java=SHORT_LIVED) as own:
        yield own
