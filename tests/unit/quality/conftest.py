"""Delta logs written by hand: what the gates read of a table without Spark."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from lockstep import lake
from lockstep.settings import Settings

Commit = Callable[..., None]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def commit(settings: Settings) -> Commit:
    """Write one version of a table's log."""

    def write(
        table: str, version: int, record: dict[str, Any], rows: int = 0, stats: Iterable[dict[str, Any]] = ()
    ) -> None:
        log = Path(lake.path(settings, table)) / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        info = {"operationMetrics": {"numOutputRows": str(rows)}, "userMetadata": json.dumps(record)}
        actions = [{"commitInfo": info}, *({"add": {"stats": json.dumps(one)}} for one in stats)]
        (log / f"{version:020d}.json").write_text("\n".join(json.dumps(action) for action in actions))

    return write


def ranges(*spans: tuple[int, int, int]) -> dict[str, Any]:
    """A ledger record with a range per (partition, start, end)."""
    return {
        "ranges": [
            {"topic": "page_views", "topic_id": "t", "partition": p, "start": start, "end": end}
            for p, start, end in spans
        ]
    }
