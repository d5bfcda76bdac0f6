"""The facts that must hold before the demo reports success. Each fact is looked up, never assumed because time has passed."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pandas as pd
import psycopg2
import pyarrow.compute as pc
from deltalake import DeltaTable

from lockstep import lake
from lockstep.airflow_api import Airflow, Run
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.tables import Tables
from lockstep.marts import run as marts
from lockstep.status.model import Status
from shop.simulate import ground_truth

if TYPE_CHECKING:
    from lockstep.settings import Settings

# What the shop's marts are built from.
MART_SOURCES = ("silver.orders", "silver.order_lines")


@dataclass(frozen=True)
class Fact:
    """A fact to wait for: whether it holds, and what was seen."""

    name: str
    holds: bool
    seen: str


def wal_position(settings: "Settings") -> str:
    """Where the source database's log ends now. Everything that was committed before has a lower position."""
    return str(_query(settings, "SELECT pg_current_wal_lsn()"))


def captured(settings: "Settings", position: str) -> Fact:
    """Whether Debezium has confirmed the source database's log up to the position."""
    behind = int(
        _query(
            settings,
            "SELECT coalesce(max(pg_wal_lsn_diff(%s, confirmed_flush_lsn)), 1) FROM pg_replication_slots "
            "WHERE database = 'shop'",
            position,
        )
    )
    return Fact(
        "changes captured", behind <= 0, "all of PostgreSQL's log" if behind <= 0 else f"{behind:,} bytes behind"
    )


def _query(settings: "Settings", query: str, *parameters: str) -> Any:
    with closing(psycopg2.connect(settings.dsn("shop"))) as connection, connection.cursor() as cursor:
        cursor.execute(query, parameters)
        row = cursor.fetchone()
    return row[0] if row else None


def drained(status: Status, layer: str) -> Fact:
    """Whether a layer has everything that the topics hold."""
    lag = sum(n for s in status.streams for name, n in s.lag.items() if name.partition(".")[0] == layer)
    sizes = {"bronze": sum(s.bronze for s in status.streams), "silver": sum(s.silver for s in status.streams)}
    rows = f", {sizes[layer]:,} rows" if layer in sizes else ""
    # If the broker does not answer, there is no stream, and so no lag.
    if not status.streams:
        return Fact(layer, False, "the broker does not answer")
    return Fact(layer, lag == 0, f"{lag:,} offsets behind{rows}")


def acknowledged(settings: "Settings") -> list[str]:
    """One sentence per stream whose bronze does not have exactly the records that the broker acknowledged to the simulator.

    What came after these, when the shop was open, is not the simulator's.
    """
    problems = []
    for contract in CONTRACTS.values():
        if contract.kind == "events":
            sent = ground_truth.read(settings, contract.topic)
            stored = _stored(settings, contract, sent)
            if stored != len(sent):
                problems.append(
                    f"{contract.name}: the broker acknowledged {len(sent):,} records, and bronze has {stored:,} of them"
                )
    return problems


def _stored(settings: "Settings", contract: Contract, sent: pd.DataFrame) -> int:
    """The rows of bronze up to the last of these records, partition by partition."""
    bronze = DeltaTable(lake.path(settings, Tables.of(contract).bronze)).to_pyarrow_dataset()
    partition, offset = pc.field("partition"), pc.field("offset")
    newest = sent.groupby("partition")["offset"].max().items()
    return sum(bronze.count_rows((partition == p) & (offset <= end)) for p, end in newest)


def reconciled(status: Status, ended: datetime) -> list[Fact]:
    """Whether both layers agree, view by view, on every window up to the end of the simulation."""
    facts = []
    for view in status.views:
        until = datetime.fromisoformat(view.until) if view.until else datetime.min.replace(tzinfo=UTC)
        seen = f"{view.windows:,} windows {view.verdict}" if view.until else "nothing closed yet"
        facts.append(Fact(f"live = batch: {view.name}", until >= ended and view.unexplained == 0, seen))
    return facts


def marts_built(settings: "Settings") -> Fact:
    """Whether the marts have every order of their sources."""
    missing = marts.missing(settings, MART_SOURCES)
    return Fact("marts built", not missing, f"{len(missing)} days or sources to go" if missing else "every day")


def failures(airflow: Airflow) -> list[Run]:
    """Runs that have failed for good: Airflow has no retries left for their tasks."""
    return [run for run in airflow.newest_runs() if run.failed]


def missing(facts: Iterable[Fact]) -> list[Fact]:
    """The facts that do not hold yet."""
    return [fact for fact in facts if not fact.holds]
