"""The marts follow their sources: each day that new, changed or deleted rows touch is built again, and no other."""

import json
import shutil
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from tests.support.paths import CHECKOUT
from tests.support.records import at, change_record
from tests.support.shop import Shop

from lockstep.contracts import CONTRACTS
from lockstep.ingest import bronze
from lockstep.kafka_clients import ensure_topics
from lockstep.marts import complete
from lockstep.marts import run as marts
from lockstep.marts.dbt_project import MartsFailed
from lockstep.quality import outcomes
from lockstep.quality.checks import Check
from lockstep.refine import silver
from lockstep.results import Results
from lockstep.suite_files import Severity

MODEL = """
{{{{ config(event_time='day', partition_by='day') }}}}
select cast(ordered_at as date) as day, count(*) as orders, min(kind) as kind
from {{{{ source('silver', '{table}') }}}}
where not _deleted
{{% if is_incremental() %}} and {{{{ interval_of_run('ordered_at') }}}} {{% endif %}}
group by 1
"""
PROPERTIES = """
version: 2
sources:
  - name: silver
    tables: [{{name: {table}, config: {{event_time: ordered_at}}}}]
models:
  - name: {mart}
    config: {{contract: {{enforced: true}}}}
    columns:
      - {{name: day, data_type: date}}
      - {{name: orders, data_type: bigint}}
      - {{name: kind, data_type: string}}
    data_tests:
      - holds: {{arguments: {{condition: kind != 'broken', day: day}}}}
"""


@dataclass
class Orders:
    """A table of orders as Debezium publishes it, and a mart that counts them by day."""

    spark: Any
    settings: Any
    contract: Any
    shop: Shop
    lsn: Any

    def change(self, before: dict[str, str] | None, after: dict[str, str] | None) -> None:
        lsn = next(self.lsn)
        value = change_record(self.contract.name, lsn, lsn, before, after).value
        self.shop.raw(json.dumps(value).encode(), lsn, key="1")

    def refine(self) -> None:
        self.shop.flush()
        bronze.ingest(self.spark, self.settings, self.contract, "run")
        silver.refine(self.spark, self.settings, self.contract, "run")

    def bring_up(self) -> list[str]:
        self.refine()
        return [f"{start:%F}" for start, _ in marts.bring_up(self.spark, self.settings, "run", Results())]

    def mart(self) -> dict[str, int]:
        return {f"{row['day']:%F}": row["orders"] for row in self.spark.table(f"marts.{self.name}").collect()}

    @property
    def name(self) -> str:
        return f"daily_{self.contract.name}"


def order(number: int, day: int, kind: str = "sale") -> dict[str, str]:
    return {"order_id": str(number), "kind": kind, "ordered_at": f"2026-11-{day:02}T23:59:59.999999Z"}


@pytest.fixture
def orders(spark, settings, tmp_path):
    contract = CONTRACTS["orders"]
    name = f"orders_{uuid.uuid4().hex[:8]}"
    contract = replace(contract, name=name, topic=name)
    ensure_topics(settings, {name: contract})
    CONTRACTS[name] = contract
    models = tmp_path / "dbt" / "models" / "marts"
    models.mkdir(parents=True)
    shutil.copy(CHECKOUT / "dbt" / "dbt_project.yml", tmp_path / "dbt")
    found = Orders(
        spark, settings.model_copy(update={"project": tmp_path}), contract, Shop(settings, contract), count(1)
    )
    (models / f"{found.name}.sql").write_text(MODEL.format(table=name))
    (models / "marts.yml").write_text(PROPERTIES.format(table=name, mart=found.name))
    yield found
    del CONTRACTS[name]


def test_today_is_built_at_once_and_a_past_day_again_when_its_rows_change(orders):
    for number, day in enumerate((1, 1, 2, 9)):
        orders.change(None, order(number, day))
    assert orders.bring_up() == ["2026-11-09", "2026-11-01"]
    assert orders.mart() == {"2026-11-01": 2, "2026-11-02": 1, "2026-11-09": 1}
    assert orders.bring_up() == [], "nothing is new"

    orders.change(None, order(5, 2))
    assert orders.bring_up() == ["2026-11-02"]
    orders.change(order(3, 9), order(3, 5))
    assert orders.bring_up() == ["2026-11-09", "2026-11-05"], "where it was, and where it is"
    orders.change(order(0, 1), None)
    assert orders.bring_up() == ["2026-11-01"]
    assert orders.mart() == {"2026-11-01": 1, "2026-11-02": 2, "2026-11-05": 1}


def test_a_day_that_fails_waits_until_it_can_be_built_and_the_others_are_done(orders):
    orders.change(None, order(1, 3, kind="broken"))
    orders.change(None, order(2, 7))
    with pytest.raises(MartsFailed, match=r"2026-11-03 to 2026-11-04: dbt build failed:\n +holds_daily"):
        orders.bring_up()
    assert orders.mart()["2026-11-07"] == 1
    assert marts.missing(orders.settings, [f"silver.{orders.contract.name}"]) == ["2026-11-03"]
    orders.change(order(1, 3, kind="broken"), order(1, 3))
    assert orders.bring_up() == ["2026-11-03"]
    assert marts.missing(orders.settings, [f"silver.{orders.contract.name}"]) == []


def test_the_marts_wait_while_rows_of_a_source_have_failed_their_gate(orders, caplog):
    orders.change(None, order(1, 3))
    verdict(orders, success=False)
    assert orders.bring_up() == []
    assert f"the marts wait: the newest rows of silver.{orders.contract.name} have not passed" in caplog.text
    verdict(orders, success=True)
    assert orders.bring_up() == ["2026-11-03"]


def verdict(orders: Orders, success: bool) -> None:
    """What a gate writes."""
    outcome = outcomes.Outcome(
        table=f"silver.{orders.contract.name}",
        suite="suite",
        results=(Check("It holds.", (), Severity.FAIL, success, reason="" if success else "It does not hold."),),
        rows=1,
        slice="true",
        version=1,
        checked_at=datetime.now(UTC),
    )
    with outcomes.TABLE.writing(orders.spark, orders.settings, "gate") as commit:
        outcomes.write(commit, [outcome], outcomes.latest(orders.settings), "gate")


def test_a_day_is_complete_when_the_log_has_passed_its_end_or_silver_has_all_of_it(orders):
    contracts = [orders.contract]
    orders.change(None, order(1, 3))
    sent = at(1)
    orders.shop.flush()
    assert complete.behind(orders.settings, contracts, sent) == [orders.contract.name], "Kafka has more than bronze"
    bronze.ingest(orders.spark, orders.settings, orders.contract, "run")
    assert complete.behind(orders.settings, contracts, sent) == [orders.contract.name], "bronze has more than silver"
    orders.refine()
    assert complete.behind(orders.settings, contracts, datetime.now(UTC)) == [], "nobody writes any more"
    orders.change(None, order(2, 3))
    orders.shop.flush()
    assert complete.behind(orders.settings, contracts, sent) == [], "the log has passed it"
    assert complete.behind(orders.settings, contracts, datetime.now(UTC)) == [orders.contract.name]
