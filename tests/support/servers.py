"""One broker, one PostgreSQL and one Spark server for all integration tests; each test has topics and tables of its own.

Several workers share them: most of a small job is waiting.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pytest
from tests.support.ports import shared
from tests.support.shop import Shop
from tests.support.source import Source
from tests.support.tables import rows_of
from xdist.scheduler import LoadScopeScheduling

from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.kafka_clients import ensure_topics
from lockstep.settings import Settings
from lockstep.stack.stack import Stack

# What the conftest of each folder of integration tests takes over.
__all__ = [
    "pytest_collection_modifyitems",
    "pytest_xdist_make_scheduler",
    "rows",
    "settings",
    "shop",
    "source",
    "spark",
    "stack",
    "stream",
    "view",
]
# The folders that take longest are begun first, so that no worker is left alone with one at the end.
LONGEST = (
    *("marts", "deploy", "refine", "erase", "serving", "quality", "killed", "views", "checkpoints"),
    *("stack", "capture", "live", "replay", "definition", "crash", "reconcile"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, len(rank)))


class ByFolder(LoadScopeScheduling):
    """Gives each worker whole folders, in the order of the tests."""

    def _split_scope(self, nodeid: str) -> str:
        return str(PurePath(nodeid.partition("::")[0]).parent)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    """The tests of a folder share fixtures, so they stay in one worker."""
    return ByFolder(config, log)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Iterator[Stack]:
    """PostgreSQL, Kafka and Spark, on a home and ports of their own; the workers of a run share them."""
    with shared(tmp_path_factory.getbasetemp().parent / testrun_uid) as running:
        yield running


@pytest.fixture(scope="session")
def settings(stack: Stack) -> Settings:
    return stack.settings


@pytest.fixture
def spark(settings: Settings) -> Iterator[Any]:
    with connect(settings, "test") as session:
        yield session


@contextmanager
def like(settings: Settings, stream: str) -> Iterator[Contract]:
    """A stream like one of the shop's, with a topic and tables of its own."""
    name = f"{stream}_{uuid.uuid4().hex[:8]}"
    contract = replace(CONTRACTS[stream], name=name, topic=name)
    ensure_topics(settings, {name: contract})
    CONTRACTS[name] = contract
    yield contract
    del CONTRACTS[name]


@pytest.fixture
def stream(settings: Settings) -> Iterator[Contract]:
    """A stream like page_views, with a topic and tables of its own."""
    with like(settings, "page_views") as contract:
        yield contract


@pytest.fixture
def view(stream: Contract) -> Iterator[View]:
    """The view page_views_per_minute, over the test's own stream."""
    own = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{stream.name[-8:]}", input=stream.name)
    VIEWS[own.name] = own
    yield own
    del VIEWS[own.name]


@pytest.fixture
def shop(settings: Settings, stream: Contract) -> Shop:
    return Shop(settings, stream)


@pytest.fixture
def source(
    spark: Any, settings: Settings, rows: Callable[[str], list[Any]], request: pytest.FixtureRequest
) -> Iterator[Source]:
    """A captured table like orders, with a topic and tables of its own; its parameter is the number of partitions."""
    name = f"orders_{uuid.uuid4().hex[:8]}"
    contract = replace(CONTRACTS["orders"], name=name, topic=name, partitions=getattr(request, "param", 1))
    ensure_topics(settings, {name: contract})
    CONTRACTS[name] = contract
    yield Source(spark, settings, contract, rows)
    del CONTRACTS[name]


@pytest.fixture
def rows(spark: Any, settings: Settings) -> Callable[[str], list[Any]]:
    """All rows of a table."""
    return lambda table: rows_of(spark, settings, table)
