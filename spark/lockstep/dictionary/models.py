"""The tables that dbt makes, as the YAML files beside the project's models describe them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from lockstep.dictionary.tables import Column, Table


def models(project: Path) -> list[Table]:
    """The models of the project, sorted: ``marts.<model>``, and ``staging.<model>`` of those that marts are made from."""
    folder = project / "dbt" / "models"
    described = {model["name"]: model for file in sorted(folder.rglob("*.yml")) for model in _described(file)}
    files = (file.relative_to(folder) for file in folder.rglob("*.sql"))
    found = (_table(file.parts[0], file.stem, described.get(file.stem, {})) for file in files)
    return sorted(found, key=lambda table: table.name)


def _described(file: Path) -> Iterator[Mapping[str, Any]]:
    yield from (YAML(typ="safe").load(file) or {}).get("models") or ()


def _table(folder: str, name: str, model: Mapping[str, Any]) -> Table:
    columns = (
        Column(column["name"], column.get("data_type", "").upper(), _line(column.get("description", "")))
        for column in model.get("columns") or ()
    )
    layer = "marts" if folder == "marts" else "staging"
    return Table(f"{layer}.{name}", _line(model.get("description", "")), tuple(columns))


def _line(text: str) -> str:
    return " ".join(text.split())
