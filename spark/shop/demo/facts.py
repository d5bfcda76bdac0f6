"""What must be true before the demo may say that it worked. Each fact is looked up, never assumed from elapsed time."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg2

from lockstep.airflow_api import Airflow, Run
from lockstep.contracts import CONTRACTS
from lockstep.status.model import Status
from shop.simulate import ground_truth

if TYPE_CHECKING:
    from lockstep.settings import Settings

ROLLUP = "rollup_daily"
# What the shop's marts are built from.
MART_SOURCES = ("silver.orders", "silver.order_lines")


@dataclass(frozen=True)
class Fact:
    """One thing to wait for: whether it holds, and what was found."""

    name: str
    holds: bool
    found: str


def wal_position(settings: "Settings") -> str:
    """Where the source database's log ends now; what was committed before has a lower position."""
    return str(_ask(settings, "SELECT pg_current_wal_lsn()"))


def captured(settings: "Settings", position: str) -> Fact:
    """Debezium has confirmed the source database's log up to the position."""
    behind = int(
        _ask(
            settings,
            "SELECT coalesce(max(pg_wal_lsn_diff(%s, confirmed_flush_lsn)), 1) FROM pg_replication_slots "
            "WHERE database = 'shop'",
            position,
        )
    )
    return Fact(
        "changes captured", behind <= 0, "all of PostgreSQL's log" if behind <= 0 else f"{behind:,} bytes behind"
    )


def _ask(settings: "Settings", query: str, *parameters: str) -> Any:
    with closing(psycopg2.connect(settings.dsn("shop"))) as connection, connection.cursor() as cursor:
        cursor.execute(query, parameters)
        row = cursor.fetchone()
    return row[0] if row else None


def drained(status: Status, layer: str) -> Fact:
    """A layer has everything that the topics hold."""
    lag = sum(n for s in status.streams for name, n in s.lag.items() if name.partition(".")[0] == layer)
    done = {"bronze": sum(s.bronze for s in status.streams), "silver": sum(s.silver for s in status.streams)}
    rows = f", {done[layer]:,} rows" if layer in done else ""
    return _none_behind(status, layer, lag, rows)


def sold(status: Status) -> Fact:
    """The marts' sources have every order and order line that was captured."""
    lag = sum(s.lag["silver"] for s in status.streams if f"silver.{s.name}" in MART_SOURCES)
    return _none_behind(status, "orders in silver", lag)


def _none_behind(status: Status, name: str, lag: int, rows: str = "") -> Fact:
    # Without an answer of the broker there is no stream, and nothing that could be behind.
    if not status.streams:
        return Fact(name, False, "the broker does not answer")
    return Fact(name, lag == 0, f"{lag:,} offsets behind{rows}")


def acknowledged(settings: "Settings", status: Status) -> list[str]:
    """Where bronze's rows are not exactly those that the broker acknowledged to the simulator; empty when they are."""
    bronze = {s.name: s.bronze for s in status.streams}
    return [
        f"{contract.name}: the broker acknowledged {sent:,} records, and bronze has {bronze[contract.name]:,}"
        for contract in CONTRACTS.values()
        if contract.kind == "events"
        and (sent := len(ground_truth.read(settings, contract.topic))) != bronze[contract.name]
    ]


def reconciled(status: Status, ended: datetime) -> list[Fact]:
    """Both layers agree, view by view, on every window up to the play's end."""
    facts = []
    for view in status.views:
        until = datetime.fromisoformat(view.until) if view.until else datetime.min.replace(tzinfo=UTC)
        found = f"{view.windows:,} windows {view.verdict}" if view.until else "nothing closed yet"
        facts.append(Fact(f"live = batch: {view.name}", until >= ended and view.unexplained == 0, found))
    return facts


def backfilled(airflow: Airflow, start: datetime, end: datetime) -> Fact:
    """Airflow's backfill has rolled up every day of ``[start, end)``."""
    done, days = airflow.succeeded(ROLLUP, start, end), (end - start).days
    active = airflow.active_backfill(ROLLUP)
    return Fact("past days rolled up", active is None and done >= days, f"{done} of {days} days")


def failures(airflow: Airflow) -> list[Run]:
    """Runs that have failed for good: Airflow has retried their tasks already."""
    return [run for dag in airflow.dags() for run in airflow.runs(dag, limit=10) if run.failed]


def missing(facts: Iterable[Fact]) -> list[Fact]:
    """Those that do not hold yet."""
    return [fact for fact in facts if not fact.holds]
