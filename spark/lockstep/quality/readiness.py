"""Which tables wait for their gate, and which views may be computed. Read from the tables' logs, without Spark."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import silver_of
from lockstep.errors import LedgerBroken
from lockstep.quality import outcomes
from lockstep.quality.slices import pending

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings

log = logging.getLogger(__name__)


def unchecked(settings: "Settings", tables: Iterable[str]) -> list[str]:
    """The tables that have rows which no gate has passed yet. One whose log is torn may have: its gate says so."""
    positions = outcomes.latest(settings).positions
    return [table for table in tables if _has_new(settings, table, positions.get(table, -1))]


def _has_new(settings: "Settings", table: str, since: int) -> bool:
    try:
        return pending(settings, table, since) is not None
    except LedgerBroken:
        return True


def is_open(settings: "Settings", table: str) -> bool:
    """Whether every row of the table has passed its gate."""
    return not unchecked(settings, [table])


def waits_for(settings: "Settings", views: Iterable["View"]) -> dict[str, list[str]]:
    """By view that must wait, its silver tables that have not passed their gates. They are logged, too."""
    sources = [(view, [silver_of(CONTRACTS[stream]) for stream in view.streams]) for view in views]
    shut = set(unchecked(settings, {table for _, tables in sources for table in tables}))
    waiting = {view.name: [table for table in tables if table in shut] for view, tables in sources}
    waiting = {view: tables for view, tables in waiting.items() if tables}
    for view, tables in waiting.items():
        log.warning("%s waits: %s has not passed its gate", view, ", ".join(tables))
    return waiting
