"""The topics and the lake's tables as Airflow's assets, so that Airflow's asset graph is the lineage.

Airflow draws an edge for each inlet and each outlet that a task declares. DAG files declare them while they are parsed, so
nothing heavy is imported here: no view, no Spark, no dbt.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from airflow.sdk import Asset

from lockstep import project
from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables

GATE, RECONCILIATION = "ops.quality", "ops.reconciliation"
# How dbt's models name a table of the lake.
_SOURCE = re.compile(r"""source\(\s*["'](\w+)["']\s*,\s*["'](\w+)["']\s*\)""")


def tables(names: Iterable[str]) -> list[Asset]:
    """The assets of the tables (``layer.name``), sorted: in another order, they would be another version of the DAG."""
    return [Asset(name, uri=f"lockstep://{name.replace('.', '/', 1)}") for name in sorted(set(names))]


def topics(kind: str) -> list[Asset]:
    """The assets of the topics of a kind of streams (``events`` or ``changes``)."""
    return tables(f"kafka.{contract.topic}" for contract in CONTRACTS.values() if contract.kind == kind)


def bronze(kind: str = "") -> list[Asset]:
    """The assets of the bronze tables, of all streams or of one kind."""
    return tables(Tables.of(c).bronze for c in CONTRACTS.values() if c.kind == kind or not kind)


def silver() -> list[Asset]:
    """The assets of what refine writes: silver, the logs of changes, and quarantine."""
    written = (Tables.of(contract) for contract in CONTRACTS.values())
    return tables(name for of in written for name in (of.log, of.current, of.quarantine) if name)


def logs() -> list[Asset]:
    """The assets of the silver tables that the views read, with each good row once."""
    return tables(Tables.of(contract).log for contract in CONTRACTS.values())


def views(layer: str) -> list[Asset]:
    """The assets of the views' tables in a layer: ``gold`` or ``live``."""
    return tables(f"{layer}.{name}" for name in project.module_names("views"))


def marts() -> list[Asset]:
    """The assets of the project's marts."""
    return tables(f"marts.{file.stem}" for file in _models("marts"))


def mart_sources() -> list[Asset]:
    """The assets of the tables that the project's dbt models read."""
    found = (_SOURCE.findall(file.read_text(encoding="utf-8")) for file in _models("."))
    return tables(".".join(source) for in_file in found for source in in_file)


def _models(folder: str) -> Iterator[Path]:
    return (configuration.load().project / "dbt" / "models" / folder).rglob("*.sql")


def emit() -> None:
    """Emit an event for each outlet of the running task that its run has written, with what was written as its ``extra``.

    Airflow emits an event for every outlet of a task that succeeds. So those that the run has not written are taken off
    the task of this process.
    """
    from airflow.sdk import get_current_context

    from lockstep.lineage.written import written

    context: Any = get_current_context()
    task, run = context["task"], context["dag_run"]
    settings = configuration.load()
    emitted = []
    for asset in task.outlets:
        if facts := written(settings, asset.name, run.run_id, run.start_date):
            context["outlet_events"][asset].extra = facts.as_extra()
            emitted.append(asset)
    task.outlets = emitted
