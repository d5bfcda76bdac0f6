"""What the gates read of a table without Spark: its Delta log."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.support import commits
from tests.support.commits import ledger_record, write_commit

from lockstep.settings import Settings

Commit = Callable[..., None]


@pytest.fixture
def commit(settings: Settings) -> Commit:
    """Write one version of a table's log."""

    def write(
        table: str, version: int, record: dict[str, Any], rows: int = 0, stats: Iterable[dict[str, Any]] = ()
    ) -> None:
        write_commit(settings, table, version, record, rows=rows, files=stats)

    return write


def ranges(*spans: tuple[int, int, int]) -> dict[str, Any]:
    """A ledger record with a range per (partition, start, end)."""
    return ledger_record(commits.ranges({p: (start, end) for p, start, end in spans}))
