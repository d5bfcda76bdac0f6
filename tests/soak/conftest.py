"""What the long runs run on, which are the fixtures of the end-to-end and integration tests, and a report that a person reads."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from tests.e2e.conftest import demo
from tests.integration.conftest import settings, stack, stream, view
from tests.integration.crash.conftest import scene, traffic

from lockstep.settings import PROJECT

__all__ = ["demo", "scene", "settings", "stack", "stream", "traffic", "view"]


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
