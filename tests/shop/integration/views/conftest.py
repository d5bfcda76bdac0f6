"""The scenario's ten minutes, sent once: every view in batch and live, for all tests of this folder."""

import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, partial
from typing import Any

import pytest
from tests.shop.integration.views import examples
from tests.shop.oracles import tokens
from tests.shop.oracles.record import Record
from tests.support.keys import keys_of
from tests.support.scenario import Sent, changes, events, send

from lockstep import service
from lockstep.batch.prepare import Prepared, prepare
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.lake import writes
from lockstep.live import generations
from lockstep.refine.silver import refine
from lockstep.settings import Settings

MINUTES = 10
# Of a topic, for a run of the batch layer and a micro-batch of a state machine: each topic takes some of them.
OFFSETS_PER_STEP = 80
SEED = int(os.environ.get("LOCKSTEP_SCENARIO_SEED", "1"))


@dataclass(frozen=True)
class Scenario:
    """The records that the broker acknowledged, by stream, and the views over them, with names of their own."""

    settings: Settings
    contracts: dict[str, Contract]
    sent: dict[str, list[Record]]
    views: dict[str, View]

    def stream_of(self, topic: str) -> str:
        """The plain name of the stream that has this topic."""
        return next(name for name, contract in self.contracts.items() if contract.topic == topic)


@pytest.fixture(autouse=True)
def seed_in_the_report(request: pytest.FixtureRequest) -> None:
    """Show the seed with each failure: with it the same records can be sent again."""
    request.node.add_report_section("setup", "scenario", f"LOCKSTEP_SCENARIO_SEED={SEED}")


@pytest.fixture(scope="session")
def contracts(settings: Settings) -> dict[str, Contract]:
    """All streams, on topics and tables of their own."""
    suffix = uuid.uuid4().hex[:8]
    own = {n: replace(c, name=f"{n}_{suffix}", topic=f"{c.topic}_{suffix}", partitions=2) for n, c in CONTRACTS.items()}
    ensure_topics(settings, own)
    return own


@contextmanager
def in_place(contracts: dict[str, Contract]) -> Iterator[None]:
    """Have the views read the scenario's streams until the block ends: the other folders have their own streams."""
    with pytest.MonkeyPatch.context() as patch:
        for name, contract in contracts.items():
            patch.setitem(CONTRACTS, name, contract)
        yield


@pytest.fixture(scope="module", autouse=True)
def scenario_in_place(contracts: dict[str, Contract]) -> Iterator[None]:
    with in_place(contracts):
        yield


@pytest.fixture(scope="session", autouse=True)
def keys_of_users(settings: Settings) -> Iterator[None]:
    """Give the oracles the keys that the platform has for the users."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "key_of", cache(lambda user_id: keys_of(settings, user_id)[0]))
        yield


@pytest.fixture(scope="session")
def needed_views(request: pytest.FixtureRequest) -> list[str]:
    """The views that the selected tests name; all of them if a test names none."""
    tests = [test for test in request.session.items if "scenario" in getattr(test, "fixturenames", ())]
    named = {test.callspec.params.get("name") if hasattr(test, "callspec") else None for test in tests}
    return list(VIEWS) if None in named else sorted(named)


@pytest.fixture(scope="session")
def scenario(settings: Settings, contracts: dict[str, Contract], needed_views: list[str]) -> Scenario:
    """The scenario, sent to the broker and rolled up."""
    needed = {stream for name in needed_views for stream in VIEWS[name].streams}
    contracts = {name: contract for name, contract in contracts.items() if name in needed}
    records = scenario_records(contracts, SEED, MINUTES)
    until = max(record.arrival for record in records) + timedelta(hours=3)
    acknowledged = send(settings, contracts, records, until)
    suffix = next(iter(contracts.values())).name[-8:]
    views = {name: replace(view, name=f"{name}_{suffix}") for name, view in VIEWS.items() if name in needed_views}
    in_steps = settings.model_copy(update={"max_offsets_per_run": OFFSETS_PER_STEP})
    with in_place(contracts):
        rolled_up(in_steps, contracts.values(), views.values())
    return Scenario(settings, contracts, acknowledged, views)


@pytest.fixture(scope="session")
def live(scenario: Scenario, contracts: dict[str, Contract]) -> dict[str, Any]:
    """By view, the progress of each micro-batch of its job, which has processed the whole log, in several steps."""
    in_steps = scenario.settings.model_copy(update={"max_offsets_per_trigger": OFFSETS_PER_STEP})
    views = scenario.views
    generations.share(scenario.settings, [view for view in views.values() if view.may_share])
    of_job = defaultdict(list)
    for name, view in views.items():
        of_job[generations.get(scenario.settings, view.name).job].append(name)
    jobs = [*of_job.values()]
    with in_place(contracts):
        progress = side_by_side(lambda names: run(in_steps, [views[name] for name in names]), jobs)
    return {name: batches for names, batches in zip(jobs, progress, strict=True) for name in names}


def scenario_records(contracts: dict[str, Contract], seed: int, minutes: float) -> list[Sent]:
    """The records of the scenario, with those of the examples, in no particular order."""
    # On average an event every 2 s and a change every 6 s, per stream.
    kinds = {"events": (events, 2.0), "changes": (changes, 6.0)}
    records: list[Sent] = []
    for name, contract in contracts.items():
        make, every = kinds[contract.kind]
        records += make(name, contract, seed, minutes, every)
    return records + [record for record in examples.sent() if record.stream in contracts]


def rolled_up(settings: Settings, contracts: Iterable[Contract], views: Iterable[View]) -> None:
    """Bring bronze, silver and gold up to the log: each view is rolled up after the first of the runs, and after the last.

    The first time Spark writes gold, as it does large results. The last time Arrow rows are written without it, and one job finds
    the events of all keyed views.
    """
    contracts, views = list(contracts), list(views)

    def refined(contract: Contract) -> bool:
        with connect(settings, "scenario") as spark:
            steps = ingest(spark, settings, contract, "scenario"), refine(spark, settings, contract, "scenario")
        return any(steps)

    def counted(view: View) -> None:
        with connect(settings, "scenario") as spark:
            roll_up(spark, settings, view, "scenario", prepared.get(view.name))

    prepared: dict[str, Prepared] = {}
    side_by_side(refined, contracts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writes, "SMALL_ROWS", 0)
        side_by_side(counted, views)
    while any(side_by_side(refined, contracts)):
        continue
    prepared |= prepare(settings, views, partial(connect, settings, "scenario"))
    found = {name for name, one in prepared.items() if one.events is not None}
    keyed = {view.name for view in views if view.keeps_until}
    assert found == (keyed if len(keyed) > 1 else set()), "the events of keyed views are found together"
    side_by_side(counted, views)


def side_by_side(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The results for the items, two at a time: Spark gives up a Python worker that gets no processor time for ten seconds."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, items))


def run(settings: Settings, views: Iterable[View]) -> list[Any]:
    """Run a job's live query over the whole log; return the progress of each micro-batch."""
    with connect(settings, "live") as spark:
        running = service.start(spark, settings, *views)
        try:
            running.processAllAvailable()
            return list(running.recentProgress)
        finally:
            running.stop()
