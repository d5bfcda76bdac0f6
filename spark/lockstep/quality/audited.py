"""Up to which version a table has been audited: write, audit, publish. Read from the tables' logs, without Spark.

A commit is written first, then a gate checks it, and only then readers see it. The promotion of a replay was held against the
suite in its shadow, so readers see it at once, unless rows before it wait for their gate.
"""

import itertools
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.errors import LedgerBroken
from lockstep.ledger import history
from lockstep.quality.suites import gated

if TYPE_CHECKING:
    from lockstep.quality.outcomes import GateState
    from lockstep.settings import Settings

log = logging.getLogger(__name__)


def versions(settings: "Settings", state: "GateState", tables: Iterable[str]) -> dict[str, int]:
    """By table, the version that readers may see. Tables without a suite are left out: of them it is the newest.

    Of a table whose log is torn it is the one up to which rows have passed. An environment has no gates.
    """
    if settings.env:
        return {}
    audited = {*tables} & {*gated(settings)}
    return {table: _version(settings, table, state) for table in sorted(audited) if lake.exists(settings, table)}


def _version(settings: "Settings", table: str, state: "GateState") -> int:
    """The version before the first commit that readers may not see yet; the newest one where there is none."""
    position = state.positions.get(table, -1)
    commits = history.recorded(settings, table, f"version > {position}")
    try:
        new = [commit for commit in itertools.takewhile(lambda c: c.version > position, commits) if commit.rows]
    except LedgerBroken as error:
        log.error("Readers stay at version %d: %s", position, error)
        return position
    has_failed = table in state.held_back
    unseen = (commit.version for commit in reversed(new) if has_failed or "replay" not in commit.record)
    first = next(unseen, None)
    newest = lake.newest_version(settings, table) or 0
    return newest if first is None else max(position, first - 1)
