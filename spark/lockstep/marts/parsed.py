"""What dbt's manifest says of the project's models: which tables they read, and which they make."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables, contract_of, silver_of

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest

    from lockstep.settings import Settings


def sources_of(manifest: "Manifest") -> list[str]:
    """The tables (``layer.name``) whose new rows change a table of dbt's, sorted. Views follow their tables by themselves."""
    return sorted({_followed(table) for model in _tables(manifest) for table in _above(manifest, model)})


def read_by_models(manifest: "Manifest") -> list[str]:
    """The tables (``layer.name``) that models read, those of views too, sorted."""
    return _read(manifest, (node for node in manifest.nodes.values() if node.resource_type.value == "model"))


def absent(settings: "Settings", manifest: "Manifest") -> list[str]:
    """The tables that models or tests read and that do not exist yet, such as those of views that do not run; sorted."""
    logs = {tables.history: tables.log for tables in map(Tables.of, CONTRACTS.values()) if tables.history}
    read = _read(manifest, manifest.nodes.values())
    return [table for table in read if not lake.exists(settings, logs.get(table, table))]


def downstream(tables: Iterable[str]) -> tuple[str, ...]:
    """dbt's options that leave out the models of these sources, and what follows from them."""
    return tuple(part for table in tables for part in ("--exclude", f"source:{table}+"))


def new_tables(settings: "Settings", manifest: "Manifest") -> tuple[list[str], bool]:
    """The models of marts that can be built and have no table yet; and whether no other has one."""
    lacking = {*absent(settings, manifest)}
    marts = [m for m in _tables(manifest) if m.schema == lake.BUILT and not _above(manifest, m) & lacking]
    new = [mart.name for mart in marts if not lake.exists(settings, f"{lake.MARTS}.{mart.alias}")]
    return new, len(new) == len(marts)


def views_of(results: Iterable[Any]) -> list[tuple[str, str]]:
    """The marts that dbt has made as views, in their order: ``marts.<name>``, and the query.

    Args:
        results: of a run of dbt.
    """
    models = [model for model in _built(results) if model.config.materialized == "view"]
    return [(f"{lake.MARTS}.{model.alias}", model.compiled_code) for model in models]


def tables_of(results: Iterable[Any]) -> list[tuple[str, str]]:
    """The names of the marts that dbt has made as tables, and those of their tables, each once.

    Args:
        results: of a run of dbt.
    """
    models = [model for model in _built(results) if model.config.materialized != "view"]
    return sorted({(model.name, model.alias) for model in models})


def _built(results: Iterable[Any]) -> list[Any]:
    models = (r.node for r in results if r.node.resource_type.value == "model" and r.status == "success")
    return [model for model in models if model.schema == lake.BUILT]


def _tables(manifest: "Manifest") -> list[Any]:
    """The models that are no views."""
    models = [node for node in manifest.nodes.values() if node.resource_type.value == "model"]
    return [model for model in models if model.config.materialized not in ("view", "ephemeral")]


def _above(manifest: "Manifest", model: Any) -> set[str]:
    """The tables (``layer.name``) that a model is made from, through other models too."""
    found, waiting = set[str](), [model.unique_id]
    while waiting:
        node = manifest.nodes.get(waiting.pop())
        above = {*node.depends_on_nodes} - found if node else set()
        found |= above
        waiting.extend(above)
    return {_table(manifest, name) for name in found & manifest.sources.keys()}


def _read(manifest: "Manifest", nodes: Iterable[Any]) -> list[str]:
    read = {name for node in nodes for name in getattr(node.depends_on, "nodes", ())}
    return sorted(_table(manifest, name) for name in read & manifest.sources.keys())


def _followed(table: str) -> str:
    """The table whose new rows are new in this one: the changes of a captured table, and its history, follow its current rows."""
    contract = contract_of(table) if table.startswith("silver.") else None
    return silver_of(contract) if contract else table


def _table(manifest: "Manifest", source: str) -> str:
    return f"{manifest.sources[source].source_name}.{manifest.sources[source].name}"
