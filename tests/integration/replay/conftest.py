"""What the tests of replays share: the batch layer run by hand, and a replay run up to a stage."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.shop import START

from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.replay import run
from lockstep.replay.parse import parse
from lockstep.replay.record import Replay, find
from lockstep.replay.request import Request
from lockstep.settings import Settings


@pytest.fixture
def batch(spark: Any, settings: Settings, stream: Contract, view: View) -> Callable[[], Any]:
    """Brings bronze, silver and gold up to the topic, by the contract of now."""

    def bring_up() -> Any:
        ingest(spark, settings, stream, "run")
        refine(spark, settings, CONTRACTS[stream.name], "run")
        return roll_up(spark, settings, view, "run")

    return bring_up


@pytest.fixture
def asked(stream: Contract, view: View) -> Callable[..., Request]:
    """A request for minutes after START, of the test's view, or of its stream where silver is replayed too."""

    def ask(minutes: tuple[int, int] = (0, 60), **more: Any) -> Request:
        start, end = (START.replace(hour=10 + m // 60, minute=m % 60).isoformat() for m in minutes)
        where = {} if {"offsets", "versions"} & more.keys() else {"from": start, "to": end}
        what = {"topics": [stream.name]} if "layers" in more else {"views": [view.name]}
        return parse({"reason": "the definition was wrong"} | where | what | more)

    return ask


@pytest.fixture
def opened(spark: Any, settings: Settings) -> Callable[[Request], Replay]:
    """Opens a replay: it is planned, and holds its intervals."""
    return lambda wanted: run.open_replay(spark, settings, wanted, "tester", "run", run.identify(wanted))


@pytest.fixture
def redone(spark: Any, settings: Settings, opened: Callable[[Request], Replay]) -> Callable[..., Replay]:
    """Runs a replay up to a stage (``compared``, ``approved`` or ``promoted``), and gives its record."""

    def redo(wanted: Request, until: str = "promoted") -> Replay:
        name = opened(wanted).id
        run.compute(spark, settings, name, "run")
        run.compare(spark, settings, name, "run")
        if until != "compared":
            run.approve(spark, settings, name, "run", "tester")
        if until == "promoted":
            run.promote(spark, settings, name, "run")
        return find(settings, name)

    return redo
