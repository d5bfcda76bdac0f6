"""Where the seconds of a dbt build go: one model by hand, and the marts as Airflow builds them.

    python benchmarks/dbt_loop.py --orders 26000 --days 374

Starts PostgreSQL and a Spark server in a home of its own, and fills the tables that the shop's marts read with made-up rows.
Prints JSON: seconds, the median of some runs on the warm server.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from tests.support.ports import started

from lockstep import lake
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.marts import build as of_marts
from lockstep.marts import dbt_project, published
from lockstep.marts.build import build
from lockstep.marts.parsed import absent, downstream
from lockstep.settings import Settings

RUNS = 5
END = datetime(2026, 11, 20, tzinfo=UTC)
LINES = 20
ADDED = {
    "_op": "STRING",
    "_commit_lsn": "BIGINT",
    "_generation": "INT",
    "_committed_at": "TIMESTAMP",
    "_arrival": "TIMESTAMP",
    "_deleted": "BOOLEAN",
}
CAPTURED = ("inventory", "order_lines", "orders", "products", "users")
EVENTS = ("page_views", "payments")
GOLD = ("ad_click_through", "fraud_alerts", "product_stock")


def fill(spark: Any, settings: Settings, orders: int, days: int) -> None:
    """Orders of twenty lines, spread over the days, and as many visits of four pages."""
    at = f"timestamp'{END:%F}' - make_dt_interval(0, 0, 0, cast(id % {orders} as double) * {days * 86_400 / orders})"
    order = {
        "order_id": f"cast(id % {orders} as string)",
        "user_id": "concat('u', id % 4000)",
        "country": "element_at(array('France', 'Norway', 'Spain'), cast(id % 3 as int) + 1)",
        "kind": "'sale'",
        "ordered_at": at,
        "_deleted": "false",
    }
    line = {"line_no": f"cast(id div {orders} as int)", "quantity": "3", "unit_price": "1.255", "product_id": "'p1'"}
    visit = {"session_id": f"cast(id % {orders} as string)", "event_time": at, "device": "'mobile'", "amount": "1.5"}
    page = {"page": f"element_at(array('/', '/search', '/product/1', '/cart'), cast(id div {orders} as int) + 1)"}
    shown = {"impression_id": "cast(id as string)", "ad_id": "concat('ad', id % 40)", "click_no": "cast(id % 2 as int)"}
    rows = {
        "silver.orders": (orders, order),
        "silver.order_lines": (orders * LINES, order | line),
        "silver.page_views": (orders * 4, visit | page),
        "silver.payments": (orders, visit | {"country": order["country"]}),
        "gold.ad_click_through": (orders * 2, shown | {"at": at}),
        "gold.fraud_alerts": (orders // 100, {"payment_id": "cast(id as string)", "amount": "1.5", "at": at}),
    }
    for name, columns in _columns().items():
        lake.create(spark, settings, name, columns)
        count, values = rows.get(name, (0, {}))
        listed = ", ".join(f"cast({values.get(c, 'null')} as {kind}) as {c}" for c, kind in columns.items())
        spark.sql(f"INSERT INTO {name} SELECT {listed} FROM range({count})")  # noqa: S608


def _columns() -> dict[str, dict[str, str]]:
    found = {f"silver.{n}": {**CONTRACTS[n].columns, **ADDED} for n in (*CAPTURED, *EVENTS)}
    found |= {f"silver.{n}_changes": {**CONTRACTS[n].columns, **ADDED} for n in CAPTURED}
    return found | {f"gold.{n}": dict(VIEWS[n].output_columns) for n in GOLD}


def median(work: Callable[[], object], runs: int = RUNS) -> float:
    """The median of the seconds that some runs take."""
    taken = []
    for _ in range(runs):
        began = time.monotonic()
        work()
        taken.append(time.monotonic() - began)
    return round(statistics.median(taken), 2)


def command(*arguments: str) -> Callable[[], object]:
    """Run a program of this environment to its end."""
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=os.environ)


def main(orders: Annotated[int, typer.Option()] = 26_000, days: Annotated[int, typer.Option()] = 374) -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as home, started(Path(home), services=["postgres", "spark"]) as stack:
        settings, found = stack.settings, {}
        with connect(settings, "benchmark") as spark:
            fill(spark, settings, orders, days)
            day = (END - timedelta(days=1), END)
            began = time.monotonic()
            build(spark, settings, *day, "first")
            found["all marts, the first time, all days"] = round(time.monotonic() - began, 2)
            found["all marts, one day"] = median(lambda: build(spark, settings, *day, "again"))
            with pytest.MonkeyPatch.context() as patch:
                for step in ("begin", "publish"):
                    patch.setattr(published, step, lambda *_, **__: None)
                found["the same, not published"] = median(lambda: build(spark, settings, *day, "again"))
            found["a run of the marts that finds nothing new: what is published is looked at"] = median(
                lambda: published.begin(spark, settings, "again")
            )
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("lockstep.marts.build._MARTS", ("--select", "daily_orders"))
                found["daily_orders alone, one day, as Airflow builds it"] = median(
                    lambda: build(spark, settings, *day, "again")
                )
            lockstep = ("-m", "lockstep.cli")
            one = ("build", "--select", "daily_orders")
            command(*lockstep, "dbt", *one)()
            found["lockstep dbt build --select daily_orders"] = median(command(*lockstep, "dbt", *one))
            found["of it: Python and the imports"] = median(command("-c", "import lockstep.cli.tools, dbt.cli.main"))
            found["of it: a session"] = median(lambda: _session(settings))
            found |= full_build(spark, settings, Path(home) / "compiled")
            with dbt_project.dbt_on(spark, settings):
                found["of it: parsing all of the project, if nothing was kept"] = median(
                    lambda: dbt_project.invoke(settings, _runner(), "parse")
                )
    print(json.dumps(found, indent=1))


def full_build(spark: Any, settings: Settings, folder: Path) -> dict[str, float]:
    """A full refresh of all marts and their tests by dbt, and the same compiled statements in one session, one by one."""
    ran: list[Any] = []
    with dbt_project.dbt_on(spark, settings):
        manifest = dbt_project.manifest_of(settings, dbt_project.project_digest(settings))
        which = (*of_marts._MARTS, *of_marts._WITHOUT, *downstream(absent(settings, manifest)))

        def by_dbt() -> None:
            ran[:] = dbt_project.run(settings, manifest, "build", *which, "--full-refresh")

        seconds = median(by_dbt)
    spark.sql(f"CREATE DATABASE compiled LOCATION '{folder}'")
    compiled = median(lambda: [_run_compiled(spark, result.node, folder) for result in ran])
    return {
        "all marts and their tests, all days, dbt build --full-refresh": seconds,
        "the same compiled statements in one session": compiled,
        "ratio": round(seconds / compiled, 2),
    }


def _run_compiled(spark: Any, node: Any, folder: Path) -> None:
    if node.resource_type.value == "test":
        spark.sql(f"SELECT count(*) FROM ({node.compiled_code})").collect()  # noqa: S608
    elif node.config.materialized == "view":
        spark.sql(f"CREATE OR REPLACE VIEW compiled.{node.name} AS {node.compiled_code}")
    else:
        spark.sql(
            f"CREATE OR REPLACE TABLE delta.`{folder}/{node.name}` USING delta PARTITIONED BY (day) AS {node.compiled_code}"
        )


def _session(settings: Settings) -> None:
    with connect(settings, "benchmark"):
        pass


def _runner() -> Any:
    from dbt.cli.main import dbtRunner

    return dbtRunner()


if __name__ == "__main__":
    typer.run(main)
