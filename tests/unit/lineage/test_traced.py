"""A step's log says what it has committed, with the offsets as a field."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.contextvars import get_contextvars
from tests.support.commits import entry, ranges

from lockstep.contracts import CONTRACTS, Contract
from lockstep.ledger.entries import Entry
from lockstep.lineage.step import traced
from lockstep.settings import Settings


class Lines(logging.Handler):
    """Keeps each message with the fields that a structured log would give it."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.kept.append((record.getMessage(), get_contextvars()))


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Lines]:
    caplog.set_level(logging.INFO, "lockstep")
    handler = Lines()
    logging.getLogger("lockstep").addHandler(handler)
    yield handler
    logging.getLogger("lockstep").removeHandler(handler)


def test_a_commit_is_logged_with_its_offsets(settings: Settings, lines: Lines) -> None:
    def work(spark: Any, settings: Settings, contract: Contract, run_id: str) -> Entry:
        return entry(ranges({0: (5, 9), 1: (7, 7)}), seq=3)

    traced("ingest", work, lambda _: [], lambda _: [])(None, settings, CONTRACTS["page_views"], "run-1")  # type: ignore[arg-type]
    ((message, fields),) = lines.kept
    assert message == "bronze.page_views: version 3 with 4 rows"
    assert fields == {"offsets": {"page_views": {"0": [5, 9]}}}


def test_a_step_without_a_commit_logs_nothing(settings: Settings, lines: Lines) -> None:
    traced("ingest", lambda *_: None, lambda _: [], lambda _: [])(None, settings, CONTRACTS["page_views"], "run-1")  # type: ignore[arg-type]
    assert lines.kept == []
