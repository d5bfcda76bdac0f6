"""The real retail history in silver, as the changes of two captured tables, and the project's own marts of orders on them."""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from confluent_kafka import Producer
from tests.support import retail_oracle
from tests.support.digest import digest
from tests.support.paths import CHECKOUT

from lockstep.contracts import CONTRACTS, Contract
from lockstep.ingest import bronze
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.marts.build import build
from lockstep.refine import silver
from lockstep.settings import Settings
from shop.simulate import retail

STREAMS = ("orders", "order_lines")
STAGING = ("staging/stg_orders", "staging/stg_order_lines", "intermediate/int_order_amounts")
# The marts of orders, with what pandas finds in the original file.
ORACLES: Mapping[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "daily_orders": retail_oracle.orders_by_day,
    "daily_customers": retail_oracle.customers_by_day,
    "customer_lifetime_value": retail_oracle.customers,
    "customer_cohorts": retail_oracle.cohorts,
}
TABLES = ("daily_orders", "daily_customers")
# How many rows one transaction of the shop has written.
_A_COMMIT = 500


@dataclass
class History:
    """Rows of the original file, in silver, with the marts of them.

    Args:
        raw: the rows.
    """

    spark: Any
    settings: Settings
    contracts: Mapping[str, Contract]
    raw: pd.DataFrame

    def build(self, start: datetime, end: datetime) -> None:
        """Build and test the marts for the days in ``[start, end)``."""
        build(self.spark, self.settings, start, end, "run")

    def mart(self, name: str) -> pd.DataFrame:
        """The rows of a mart as readers see them."""
        rows = [row.asDict() for row in self.spark.table(f"marts.{name}").collect()]
        keys = {"daily_orders": ["day", "country"], "daily_customers": ["day", "user_id"]}
        sort = keys | {"customer_lifetime_value": ["user_id"], "customer_cohorts": ["cohort", "month_no"]}
        return pd.DataFrame(rows).sort_values(sort[name], ignore_index=True)

    def differing(self) -> list[str]:
        """The marts that differ from what pandas finds, to the thousandth of a pound."""
        found = []
        for name, oracle in ORACLES.items():
            expected, mart = oracle(self.raw), self.mart(name)
            rows = [
                [tuple(None if pd.isna(value) else value for value in row) for row in table.itertuples(index=False)]
                for table in (expected, mart[expected.columns.tolist()])
            ]
            if rows[0] != rows[1] or not rows[0]:
                found.append(name)
        return found

    def digests(self) -> list[str]:
        """The digests of the marts that are tables."""
        return [digest(self.settings, f"marts.{name}") for name in TABLES]


@contextmanager
def history(spark: Any, settings: Settings, project: Path, start: datetime, end: datetime) -> Iterator[History]:
    """The rows of the file in ``[start, end)`` as Debezium publishes them, taken into silver by the real steps."""
    raw = retail.read()
    raw = raw[(raw["InvoiceDate"] >= start.replace(tzinfo=None)) & (raw["InvoiceDate"] < end.replace(tzinfo=None))]
    suffix = uuid.uuid4().hex[:8]
    contracts = {name: replace(CONTRACTS[name], name=f"{name}_{suffix}", topic=f"{name}_{suffix}") for name in STREAMS}
    ensure_topics(settings, {contract.name: contract for contract in contracts.values()})
    CONTRACTS.update({contract.name: contract for contract in contracts.values()})
    _write_project(project, contracts)
    found = History(spark, settings.model_copy(update={"project": project}), contracts, raw)
    tables = retail.tables(raw)
    value = (tables.lines["unit_price"] * 1000).round() * tables.lines["quantity"] / 1000
    amounts = value.groupby(tables.lines["order_id"]).sum()
    _send(settings, contracts["orders"], tables.orders.assign(amount=tables.orders["order_id"].map(amounts)))
    _send(settings, contracts["order_lines"], tables.lines)
    for contract in contracts.values():
        while bronze.ingest(spark, settings, contract, "run"):
            silver.refine(spark, settings, contract, "run")
    try:
        yield found
    finally:
        for contract in contracts.values():
            del CONTRACTS[contract.name]


def _send(settings: Settings, contract: Contract, rows: pd.DataFrame) -> None:
    """The inserts of the rows, in the form in which Debezium sends them."""
    producer = Producer(confluent_config(settings) | {"acks": "all", "linger.ms": 50, "log_level": 0})
    now = round(datetime.now(UTC).timestamp() * 1000)
    money = [name for name, kind in contract.columns.items() if kind.startswith("DECIMAL")]
    for number, row in enumerate(rows.to_dict("records")):
        after = {name: None if pd.isna(row[name]) else row[name] for name in contract.columns}
        after |= {name: f"{row[name]:.3f}" for name in money} | {"ordered_at": row["ordered_at"].isoformat()}
        lsn, commit = number + 1, number // _A_COMMIT * _A_COMMIT
        source = {"connector": "postgresql", "lsn": lsn, "sequence": json.dumps([str(commit), str(lsn)]), "ts_ms": now}
        change = {"before": None, "after": after, "op": "c", "source": source | {"snapshot": "false"}}
        producer.produce(contract.topic, json.dumps(change).encode(), str(row["order_id"]).encode(), partition=0)
        if number % 10_000 == 0:
            producer.poll(0)
            producer.flush(60)
    assert producer.flush(60) == 0


def _write_project(project: Path, contracts: Mapping[str, Contract]) -> None:
    """The project's own models of orders, with their tests, on these streams."""
    models, own = CHECKOUT / "dbt" / "models", project / "dbt" / "models"
    for model in (*STAGING, *(f"marts/{name}" for name in ORACLES)):
        (own / model).parent.mkdir(parents=True, exist_ok=True)
        text = (models / f"{model}.sql").read_text()
        for name, contract in contracts.items():
            text = text.replace(f"'{name}'", f"'{contract.name}'")
        (own / f"{model}.sql").write_text(text)
    shutil.copy(CHECKOUT / "dbt" / "dbt_project.yml", project / "dbt")
    written = yaml.safe_load((models / "marts" / "marts.yml").read_text())
    tables = [{"name": c.name, "config": {"event_time": c.event_time}} for c in contracts.values()]
    properties = {
        "version": 2,
        "groups": written["groups"],
        "sources": [{"name": "silver", "tables": tables}],
        "models": [model for model in written["models"] if model["name"] in ORACLES],
    }
    (own / "marts" / "marts.yml").write_text(yaml.safe_dump(properties))
