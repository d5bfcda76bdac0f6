"""What tests of the marts share: a captured table of orders, and a mart that counts them by day."""

import json
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.paths import CHECKOUT
from tests.support.records import change_record
from tests.support.shop import Shop

from lockstep import lake
from lockstep.contracts import CONTRACTS, Contract
from lockstep.ingest import bronze
from lockstep.kafka_clients import ensure_topics
from lockstep.marts import run as marts
from lockstep.refine import silver
from lockstep.results import Results
from lockstep.settings import Settings

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
# Of a week ago there are half as many at least.
VOLUME = """
      - volume:
          arguments: {{day: day, value: sum(orders), weeks: 2}}
          config: {{severity: %s}}
"""


@dataclass
class Orders:
    """A table of orders as Debezium publishes it, and a mart that counts them by day."""

    spark: Any
    settings: Any
    contract: Contract
    shop: Shop
    lsn: Any

    @property
    def models(self) -> Path:
        """The directory of the project's marts."""
        return self.settings.project / "dbt" / "models" / "marts"

    def write(self, model: str = MODEL, second: str = "", tests: str = "") -> None:
        """Write the model ``daily_<stream>`` with more tests, and ``twice_<stream>`` if there is a second."""
        (self.models / f"{self.name}.sql").write_text(model.format(table=self.contract.name))
        (self.models / "marts.yml").write_text((PROPERTIES + tests).format(table=self.contract.name, mart=self.name))
        if second:
            (self.models / f"{self.second}.sql").write_text(second.format(mart=self.name))

    def change(self, before: dict[str, str] | None, after: dict[str, str] | None) -> None:
        lsn = next(self.lsn)
        value = change_record(self.contract.name, lsn, lsn, before, after).value
        self.shop.raw(json.dumps(value).encode(), lsn, key="1")

    def refine(self) -> None:
        self.shop.flush()
        bronze.ingest(self.spark, self.settings, self.contract, "run")
        silver.refine(self.spark, self.settings, self.contract, "run")

    def bring_up(self) -> list[str]:
        """Take what was sent, and build its days; the first day of each span."""
        self.refine()
        return [f"{start:%F}" for start, _ in marts.bring_up(self.spark, self.settings, "run", Results())]

    def mart(self, name: str = "", schema: str = "marts") -> dict[str, int]:
        """The orders of each day, as readers see them."""
        rows = self.spark.table(f"{schema}.{name or self.name}").collect()
        return {f"{row['day']:%F}": row["orders"] for row in rows}

    @property
    def name(self) -> str:
        """The mart."""
        return f"daily_{self.contract.name}"

    @property
    def second(self) -> str:
        """A mart that is made from it."""
        return f"twice_{self.contract.name}"


@contextmanager
def orders_of(spark: Any, settings: Settings, project: Path) -> Iterator[Orders]:
    """A captured table of its own, and a project with a mart of it."""
    name = f"orders_{uuid.uuid4().hex[:8]}"
    contract = replace(CONTRACTS["orders"], name=name, topic=name)
    ensure_topics(settings, {name: contract})
    CONTRACTS[name] = contract
    own = settings.model_copy(update={"project": project})
    found = Orders(spark, own, contract, Shop(settings, contract), count(1))
    found.models.mkdir(parents=True)
    shutil.copy(CHECKOUT / "dbt" / "dbt_project.yml", project / "dbt")
    found.write()
    yield found
    del CONTRACTS[name]


def order(number: int, day: int, kind: str = "sale") -> dict[str, str]:
    return {"order_id": str(number), "kind": kind, "ordered_at": f"2026-11-{day:02}T23:59:59.999999Z"}


def drop_marts(spark: Any, settings: Settings) -> None:
    """Remove every mart: a build makes all those whose sources are there, and a mart that is there is not built for all days."""
    for table in lake.tables(settings, ("marts",)):
        lake.drop(spark, settings, table)
