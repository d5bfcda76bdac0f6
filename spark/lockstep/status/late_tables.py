"""The tables of a layer that lag further than they may, each with a line that says so."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.tables import Tables, bronze_of, gold_of, silver_of
from lockstep.errors import LedgerBroken
from lockstep.ledger.late import is_late
from lockstep.ledger.ranges import ends
from lockstep.status.gather import gather_streams

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings


def late_bronze(settings: "Settings", contracts: Iterable[Contract]) -> dict[str, str]:
    """Of these streams, by table. Asks the broker how old the records are that bronze lacks."""
    wanted = {contract.name: contract for contract in contracts}
    behind = {
        s.name: s.overdue["bronze"] for s in gather_streams(settings, [], wanted.values()) if "bronze" in s.overdue
    }
    return {bronze_of(wanted[name]): _line(settings, wanted[name], f"{n:,} offsets") for name, n in behind.items()}


def late_silver(settings: "Settings", contracts: Iterable[Contract]) -> dict[str, str]:
    """Of these streams, by the table that readers look at."""
    return {
        silver_of(c): _line(settings, c, "rows of bronze")
        for c in contracts
        if _lags(settings, Tables.of(c).bronze, Tables.of(c).log, c)
    }


def late_gold(settings: "Settings", views: Iterable["View"]) -> dict[str, str]:
    """Of these views, by table."""
    late: dict[str, str] = {}
    for view in views:
        streams = [CONTRACTS[name] for name in view.streams]
        if behind := [s.name for s in streams if _lags(settings, Tables.of(s).log, gold_of(view), s, view)]:
            late[gold_of(view)] = _line(settings, view, f"rows of {', '.join(behind)}")
    return late


def _lags(settings: "Settings", source: str, table: str, stream: Contract, of: "Contract | View | None" = None) -> bool:
    try:
        newest = ledger.latest(settings, table)
        taken = ends(r for r in newest.ranges if r.topic == stream.topic) if newest else {}
        return is_late(settings, source, taken, datetime.now(UTC) - _max_lag(settings, of or stream))
    except LedgerBroken:
        # Nobody knows. The task fails with it, and names it.
        return False


def _line(settings: "Settings", of: "Contract | View", what: str) -> str:
    return f"lacks {what} that have been there for more than {_max_lag(settings, of).total_seconds():.0f} s"


def _max_lag(settings: "Settings", of: "Contract | View") -> timedelta:
    return of.max_lag or timedelta(seconds=settings.max_lag_seconds)
