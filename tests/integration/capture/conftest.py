"""A table of the source database, which Debezium captures."""

from collections.abc import Iterator

import pytest
from tests.support.captured import captured_table

from lockstep.contracts import Contract
from lockstep.stack.stack import Stack


@pytest.fixture(scope="module")
def captured(stack: Stack) -> Iterator[Contract]:
    with captured_table(stack) as contract:
        yield contract
