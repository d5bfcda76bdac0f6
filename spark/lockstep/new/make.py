"""Write what a new stream or view must have: all of it, or nothing when anything is in the way."""

import importlib.util
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from ruamel.yaml.error import YAMLError

from lockstep.contracts import Contract
from lockstep.definition.check import NAME
from lockstep.errors import LockstepError
from lockstep.new import suites
from lockstep.new.sources import with_table
from lockstep.settings import Settings

SOURCES = Path("dbt/models/sources.yml")
_TYPE = r"(STRING|BOOLEAN|INT|BIGINT|DOUBLE|DATE|TIMESTAMP|DECIMAL\(\d{1,2},\d{1,2}\))"
_COLUMN = re.compile(rf"{NAME} {_TYPE}")


class NotMade(LockstepError):
    """What was asked for cannot be made; nothing was written."""


@dataclass(frozen=True)
class Stream:
    """A stream to be made.

    Args:
        schema: its columns, as Spark DDL: ``name TYPE`` with a comma and a blank in between.
        id, key: the columns that identify an event (a row), and that its records are keyed by.
        time: when it happened; for changes it may be empty.
    """

    name: str
    kind: str
    schema: str
    id: str
    key: str
    time: str


def stream(settings: Settings, new: Stream) -> list[Path]:
    """Write the contract, its suite and its dbt source into the project; returns the files below it, the contract first.

    Raises:
        NotMade: the name is taken or cannot be one, or the columns do not fit together.
    """
    root = settings.project
    _check_name(settings, new.name, "contracts")
    columns = _columns(new.schema)
    if new.kind not in ("events", "changes"):
        raise NotMade(f"There is no kind {new.kind!r}: a stream is events or changes.")
    for what, column in {"id": new.id, "key": new.key, "time": new.time}.items():
        if column not in columns and not (what == "time" and new.kind == "changes" and not column):
            raise NotMade(f"The {what} {column!r} is not one of the columns {', '.join(columns)}.")
    if new.time and columns[new.time] != "TIMESTAMP":
        raise NotMade(f"{new.time} is {columns[new.time]}: a stream's time is a TIMESTAMP.")
    required = list(dict.fromkeys([new.id, *([new.time] if new.kind == "events" else []), new.key]))
    words = {
        "name": new.name,
        "package": settings.package,
        "title": _title(new.name),
        "schema": new.schema,
        "id": new.id,
        "key": new.key,
        "time": new.time,
        "required": ", ".join(f'"{name}"' for name in required) + ("," if len(required) == 1 else ""),
    }
    texts = {
        Path(f"spark/{settings.package}/contracts/{new.name}.py"): _filled(f"stream_{new.kind}.py", words),
        Path(f"expectations/silver/{new.name}.json"): suites.of_stream(new.name, required, new.id),
        SOURCES: _with_source(root, "silver", new.name),
    }
    return _write(root, texts)


def view(settings: Settings, name: str, reads: str, keyed: bool = False) -> list[Path]:
    """Write a view over an event stream, its suite, dbt source, oracle and unit test; returns the files, the view first.

    A windowed view counts the stream's rows by minute and key; a keyed one numbers them. Both are there to be changed.

    Raises:
        NotMade: the name is taken or cannot be one, or the stream does not exist, or is a table's changes.
    """
    root, package = settings.project, settings.package
    _check_name(settings, name, "views")
    contract = _contract(settings, reads)
    if contract.kind == "changes":
        raise NotMade(f"{reads} is a table's changes: write a machine over it, as views/product_stock.py is one.")
    by, id_, types = contract.key[0], contract.unique_id[0], contract.columns
    kind = "keyed" if keyed else "windowed"
    words = {
        "name": name,
        "package": package,
        "title": _title(name),
        "input": reads,
        "by": by,
        "type": types[by],
        "machine": by if types[by] == "STRING" else f"CAST({by} AS STRING)",
        "id": id_,
        "id_type": types[id_],
        "time": contract.event_time,
    }
    suite = (
        suites.of_machines(name, [id_], [by]) if keyed else suites.of_windows(name, ["window_start", by], ["events"])
    )
    texts = {
        Path(f"spark/{package}/views/{name}.py"): _filled(f"view_{kind}.py", words),
        Path(f"expectations/gold/{name}.json"): suite,
        Path(f"tests/{package}/oracles/{name}.py"): _filled(f"oracle_{kind}.py", words),
        Path(f"tests/{package}/unit/views/test_{name}.py"): _filled(f"test_{kind}.py", words),
        SOURCES: _with_source(root, "gold", name),
    }
    return _write(root, texts)


def _check_name(settings: Settings, name: str, where: str) -> None:
    if not re.fullmatch(NAME, name) or keyword.iskeyword(name):
        raise NotMade(f"{name!r} cannot be a name: use small letters, digits and underscores, a letter first.")
    path = f"spark/{settings.package}/{where}/{name}.py"
    if (settings.project / path).exists():
        raise NotMade(f"{name} is there already: see {path}.")


def _columns(schema: str) -> dict[str, str]:
    parts = schema.split(", ")
    for part in parts:
        if not _COLUMN.fullmatch(part):
            raise NotMade(
                f"{part!r} is not a column: write `name TYPE`, with a comma and a blank in between, small letters in names, and "
                "one of STRING, BOOLEAN, INT, BIGINT, DOUBLE, DATE, TIMESTAMP, DECIMAL(p,s)."
            )
    columns = dict(part.split(" ") for part in parts)
    if len(columns) < len(parts):
        raise NotMade(f"A column is named twice in {schema!r}.")
    return columns


def _contract(settings: Settings, name: str) -> Contract:
    """The contract in the project's files, which may be newer than this process."""
    file = settings.project / f"spark/{settings.package}/contracts/{name}.py"
    spec = importlib.util.spec_from_file_location(name, file) if re.fullmatch(NAME, name) and file.exists() else None
    if spec is None or spec.loader is None:
        known = sorted(f.stem for f in file.parent.glob("*.py") if f.stem != "__init__")
        raise NotMade(
            f"There is no stream {name!r}: make it with `lockstep new stream`, or name one of {', '.join(known)}."
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    contract: Contract = module.CONTRACT
    return contract


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _filled(template: str, words: Mapping[str, str]) -> str:
    return Template((files("lockstep.new") / "templates" / f"{template}.tmpl").read_text()).substitute(words)


def _with_source(root: Path, layer: str, name: str) -> str:
    """The project's dbt sources with the new table."""
    try:
        return with_table((root / SOURCES).read_text(), layer, name, f"{_title(name)}.")
    except (KeyError, YAMLError) as error:
        raise NotMade(
            f"{name} cannot be added to the source {layer!r} of {SOURCES} ({error}): "
            f"the file needs `- name: {layer}` under `sources`."
        ) from error


def _write(root: Path, texts: Mapping[Path, str]) -> list[Path]:
    if taken := [str(path) for path in texts if path != SOURCES and (root / path).exists()]:
        raise NotMade(f"{', '.join(taken)} is there already: remove it first, or choose another name.")
    for path, text in texts.items():
        (root / path).write_text(text)
    return list(texts)
