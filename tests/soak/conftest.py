"""What the long runs run on, which are the fixtures of the end-to-end and integration tests, and a report that a person reads."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.e2e.conftest import demo
from tests.support.paths import CHECKOUT
from tests.support.ports import started
from tests.support.servers import rows, shop, source, spark, stream, view

from lockstep.settings import Settings
from lockstep.stack.stack import Stack

__all__ = ["demo", "rows", "shop", "source", "spark", "stream", "view"]


@pytest.fixture(scope="session")
def report() -> Iterator[Callable[[str], None]]:
    """Adds a line to ``artifacts/soak/<time>.md``."""
    file = CHECKOUT / "artifacts" / "soak" / f"{datetime.now(UTC):%Y-%m-%dT%H%M}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(
            "# Soak\n\n| round | seed | killed | recovered in (s) | records sent | sums hold |\n|---|---|---|---|---|---|\n"
        )

        def add(line: str) -> None:
            lines.write(line + "\n")
            lines.flush()

        yield add


@pytest.fixture
def java() -> str:
    """Further options for the servers' JVMs; a module that wants some has its own."""
    return ""


@pytest.fixture
def stack(tmp_path: Path, java: str) -> Iterator[Stack]:
    """PostgreSQL, Kafka and Spark, with an empty lake for each test."""
    with started(tmp_path / "home", java) as running:
        yield running


@pytest.fixture
def settings(stack: Stack) -> Settings:
    return stack.settings
