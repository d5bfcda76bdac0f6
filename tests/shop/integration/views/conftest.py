"""The town's ten minutes, played once: every view in batch and live, for all tests of this folder."""

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.shop.integration.views import examples, town
from tests.shop.oracles.record import Record

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine.silver import refine
from lockstep.settings import Settings

MINUTES = 10
SEED = int(os.environ.get("LOCKSTEP_TOWN_SEED", "1"))


@dataclass(frozen=True)
class Town:
    """What the broker acknowledged, by stream, and the views over it under names of their own."""

    settings: Settings
    sent: dict[str, list[Record]]
    views: dict[str, View]


@pytest.fixture(scope="session")
def contracts(settings: Settings) -> dict[str, Contract]:
    """All streams, on topics and tables of their own."""
    suffix = uuid.uuid4().hex[:8]
    own = {n: replace(c, name=f"{n}_{suffix}", topic=f"{c.topic}_{suffix}", partitions=2) for n, c in CONTRACTS.items()}
    ensure_topics(settings, own)
    return own


@contextmanager
def in_place(contracts: dict[str, Contract]) -> Iterator[None]:
    """Have the views read the town's streams, until the block ends: the other folders have their own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, contract in contracts.items():
            patch.setitem(CONTRACTS, name, contract)
        yield


@pytest.fixture(scope="module", autouse=True)
def town_in_place(contracts: dict[str, Contract]) -> Iterator[None]:
    with in_place(contracts):
        yield


@pytest.fixture(scope="session")
def wanted(request: pytest.FixtureRequest) -> list[str]:
    """The views that the chosen tests name; all of them where a test names none."""
    tests = [test for test in request.session.items if "played" in getattr(test, "fixturenames", ())]
    named = {test.callspec.params.get("name") if hasattr(test, "callspec") else None for test in tests}
    return list(VIEWS) if None in named else sorted(named)


@pytest.fixture(scope="session")
def played(settings: Settings, contracts: dict[str, Contract], wanted: list[str]) -> Town:
    """The town, played and rolled up; the live queries have seen it all."""
    needed = {stream for name in wanted for stream in VIEWS[name].streams}
    contracts = {name: contract for name, contract in contracts.items() if name in needed}
    sent = life(contracts, SEED, MINUTES)
    until = max(one.arrival for one in sent) + timedelta(hours=3)
    acknowledged = town.play(settings, contracts, sent, until)
    suffix = next(iter(contracts.values())).name[-8:]
    views = {name: replace(view, name=f"{name}_{suffix}") for name, view in VIEWS.items() if name in wanted}
    with in_place(contracts):
        rolled_up(settings, contracts.values(), views.values())
    return Town(settings, acknowledged, views)


@pytest.fixture(scope="session")
def live(played: Town, contracts: dict[str, Contract]) -> dict[str, Any]:
    """By view, the last progress of its live query, which has taken all that the log holds."""
    with in_place(contracts):
        progress = side_by_side(lambda view: run(played.settings, view), played.views.values())
    return dict(zip(played.views, progress, strict=True))


def life(contracts: dict[str, Contract], seed: int, minutes: float) -> list[town.Sent]:
    """What the town sends to the streams, the examples among it; in no order."""
    kinds = {"events": (town.events, 2.0), "changes": (town.changes, 6.0)}
    sent: list[town.Sent] = []
    for name, contract in contracts.items():
        make, every = kinds[contract.kind]
        sent += [replace(one, stream=name) for one in make(contract, seed, minutes, every)]
    return sent + [one for one in examples.sent() if one.stream in contracts]


def rolled_up(settings: Settings, contracts: Iterable[Contract], views: Iterable[View]) -> None:
    """Bring bronze, silver and gold up to the log."""

    def refined(contract: Contract) -> None:
        with connect(settings, "town") as spark:
            ingest(spark, settings, contract, "town")
            refine(spark, settings, contract, "town")

    def counted(view: View) -> None:
        with connect(settings, "town") as spark:
            roll_up(spark, settings, view, "town")

    side_by_side(refined, contracts)
    side_by_side(counted, views)


def side_by_side(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The results for the items, two at a time: a Python worker that the machine starves for ten seconds is given up by Spark."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


def run(settings: Settings, view: View) -> Any:
    """The view's live query over all that the log holds; its last progress."""
    # A MERGE takes its transaction id from the session, so each query has its own.
    with connect(settings, "live") as spark:
        running = service.start(spark, settings, view)
        try:
            running.processAllAvailable()
            return running.lastProgress
        finally:
            running.stop()
