"""Which tables and topics each step reads and writes, by name: ``layer.table``, and ``kafka.topic`` for a topic.

DAG files ask while they are parsed, so nothing heavy is imported here: no view, no Spark, no dbt.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import project
from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS, of_kind
from lockstep.definition.tables import Tables

if TYPE_CHECKING:
    from lockstep.contracts import Contract, Kind
    from lockstep.definition import View

TOPIC = "kafka."
GATE, RECONCILIATION = "ops.quality", "ops.reconciliation"
# How dbt's models name another one.
_REF = re.compile(r"""ref\(\s*(?:["']\w+["']\s*,\s*)?["'](\w+)["']""")
# How dbt's models name a table of the lake.
_SOURCE = re.compile(r"""source\(\s*["'](\w+)["']\s*,\s*["'](\w+)["']\s*\)""")


def topic_of(contract: "Contract") -> str:
    """The name of the stream's topic."""
    return f"{TOPIC}{contract.topic}"


def topics(kind: "Kind") -> list[str]:
    """The topics of a kind of streams (``events`` or ``changes``)."""
    return [topic_of(contract) for contract in of_kind(kind).values()]


def results() -> list[str]:
    """The topics that have the results of views."""
    return [topic_of(contract) for contract in CONTRACTS.values() if contract.view]


def bronze(kind: "Kind | None" = None) -> list[str]:
    """The bronze tables, of all streams or of one kind."""
    return [Tables.of(contract).bronze for contract in (of_kind(kind) if kind else CONTRACTS).values()]


def refined(contract: "Contract") -> list[str]:
    """What refine writes of a stream: silver, the log of changes, and quarantine."""
    of = Tables.of(contract)
    return [name for name in (of.log, of.current, of.quarantine) if name]


def silver() -> list[str]:
    """What refine writes of all streams."""
    return [name for contract in CONTRACTS.values() for name in refined(contract)]


def logs() -> list[str]:
    """The silver tables that the views read, with each good row once."""
    return [Tables.of(contract).log for contract in CONTRACTS.values()]


def views(layer: str) -> list[str]:
    """The views' tables in a layer: ``gold`` or ``live``."""
    return [f"{layer}.{name}" for name in project.module_names("views")]


def read_by(view: "View") -> list[str]:
    """What a view reads: silver's logs of its streams."""
    return [Tables.of(CONTRACTS[stream]).log for stream in view.streams]


def replayed() -> list[str]:
    """What a replay may write."""
    return [*bronze(), *silver(), *views("gold")]


def marts() -> list[str]:
    """The project's marts."""
    return sorted(f"marts.{file.stem}" for file in _models("marts"))


def mart_references() -> dict[str, list[str]]:
    """The names of the marts, each with the marts that it is made from, through other models too."""
    refs = {file.stem: {*_REF.findall(file.read_text(encoding="utf-8"))} for file in _models(".")}
    names = sorted(file.stem for file in _models("marts"))

    def above(model: str, known: frozenset[str]) -> set[str]:
        direct = refs.get(model, set()) - known
        return direct.union(*(above(name, known | direct) for name in direct if name not in names))

    return {name: sorted({*names} & above(name, frozenset([name]))) for name in names}


def mart_sources() -> list[str]:
    """The tables that the project's dbt models read."""
    found = (_SOURCE.findall(file.read_text(encoding="utf-8")) for file in _models("."))
    return sorted({".".join(source) for in_file in found for source in in_file})


def _models(folder: str) -> Iterator[Path]:
    return (configuration.load().project / "dbt" / "models" / folder).rglob("*.sql")
