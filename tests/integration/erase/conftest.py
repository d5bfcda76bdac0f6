"""What the tests of erasures share: servers of their own, the batch layer run by hand, and an erasure of the test's own streams.

An erasure looks at all that a platform has. In the servers that all tests share, others tear files and remove topics meanwhile.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.ports import started

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.erase import run, scope
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.settings import Settings
from lockstep.stack.stack import Stack


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with started(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture(scope="package")
def settings(stack: Stack) -> Settings:
    return stack.settings


@pytest.fixture
def person() -> str:
    """Somebody whom no other test knows: the scanner looks at all that the stack has."""
    return f"ann{uuid.uuid4().hex[:10]}"


@pytest.fixture
def batch(settings: Settings, stream: Contract, view: View) -> Callable[[], None]:
    """Brings bronze, silver and gold up to the topic, in a session of its own, as a task does."""

    def bring_up() -> None:
        with connect(settings, "task") as session:
            ingest(session, settings, stream, "run")
            refine(session, settings, CONTRACTS[stream.name], "run")
            roll_up(session, settings, view, "run")

    return bring_up


@pytest.fixture
def erase(spark: Any, settings: Settings) -> Callable[..., Any]:
    """Erases a person in some streams."""

    def ask(value: str, *streams: Contract) -> Any:
        return run.erase(spark, settings, scope.of_person(streams, value), "bob", "she asked for it")

    return ask
