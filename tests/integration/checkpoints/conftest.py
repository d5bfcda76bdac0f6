"""Fixtures for a live query over a stream of its own, which a test can run again and again."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.shop import Shop
from tests.support.tables import rows_of

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.checkpoints import journal
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.ingest.bronze import ingest
from lockstep.live import generations
from lockstep.refine.silver import refine
from lockstep.settings import Settings


@pytest.fixture
def followed(settings: Settings, view: View) -> Callable[..., AbstractContextManager[Callable[[], None]]]:
    """Run the query during a block, as the service does. It gives a function that waits until all input is read."""

    @contextmanager
    def follow(conf: Mapping[str, str] | None = None) -> Iterator[Callable[[], None]]:
        with connect(settings, "live") as spark:
            for name, value in (conf or {}).items():
                spark.conf.set(name, value)
            running = service.start(spark, settings, view)
            try:
                yield running.processAllAvailable
            finally:
                running.stop()
        job = generations.get(settings, view.name).job
        journal.update(settings, job, journal.digests(settings, job))

    return follow


@pytest.fixture
def live(followed: Callable[..., Any]) -> Callable[[], None]:
    """Run the query until it has read all of its topic, and stop it."""

    def run() -> None:
        with followed() as process_all:
            process_all()

    return run


@pytest.fixture
def counts(spark: Any, settings: Settings, view: View) -> Callable[[], list[tuple[str, int]]]:
    """The rows of the live table: minute and views."""

    def read() -> list[tuple[str, int]]:
        rows = rows_of(spark, settings, f"live.{view.name}")
        return sorted((f"{r['window_start']:%H:%M}", r["views"]) for r in rows)

    return read


@pytest.fixture
def minutes(shop: Shop) -> Callable[[range], None]:
    """Send two page views in each of the minutes, and then a heartbeat after their end to every partition."""

    def play(chosen: range) -> None:
        for minute in chosen:
            shop.view(f"a{minute}", minute * 60 + 10)
            shop.view(f"b{minute}", minute * 60 + 40)
        shop.heartbeat(chosen.stop * 60 + 30)
        shop.flush()

    return play


@pytest.fixture
def batch(spark: Any, settings: Settings, stream: Contract, view: View) -> Callable[[], None]:
    """Bring the batch layer up to date with the topic."""

    def run() -> None:
        ingest(spark, settings, stream, "run")
        refine(spark, settings, stream, "run")
        roll_up(spark, settings, view, "run")

    return run


@pytest.fixture
def checkpoint_path(settings: Settings, view: View) -> Callable[[], Path]:
    """The directory of the query's current checkpoint."""
    return lambda: Path(generations.get(settings, view.name).location(settings))
