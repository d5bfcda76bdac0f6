"""The whole platform for the long runs, with the end-to-end tests' fixtures, and a report that a person reads."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from tests.e2e.conftest import demo

from lockstep.settings import PROJECT

__all__ = ["demo"]


@pytest.fixture(scope="session")
def report() -> Iterator[Callable[[str], None]]:
    """Adds a line to ``artifacts/soak/<time>.md``."""
    file = PROJECT / "artifacts" / "soak" / f"{datetime.now(UTC):%Y-%m-%dT%H%M}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(
            "# Soak\n\n| round | seed | killed | recovered in (s) | records sent | sums hold |\n|---|---|---|---|---|---|\n"
        )

        def add(line: str) -> None:
            lines.write(line + "\n")
            lines.flush()

        yield add
