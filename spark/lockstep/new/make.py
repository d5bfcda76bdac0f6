"""Write what a new stream or view must have: all of it, or nothing when anything is in the way."""

import importlib.util
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.error import YAMLError

from lockstep.contracts import Contract
from lockstep.dictionary import Table, of_stream, of_view
from lockstep.new import schemas, suites
from lockstep.new.render import NAME, SOURCES, NotMade, rendered, write
from lockstep.new.sources import with_tables
from lockstep.settings import Settings

_TYPE = re.compile(r"STRING|BOOLEAN|INT|BIGINT|DOUBLE|DATE|TIMESTAMP|DECIMAL\(\d{1,2},\d{1,2}\)")
# What the templates of views name themselves.
_OWN_COLUMNS = {"windowed": ("window_start", "window_end", "events"), "keyed": ("at", "seen")}


@dataclass(frozen=True)
class Stream:
    """A stream to be made.

    Args:
        kind: ``events``, or ``changes`` of a PostgreSQL table.
        columns: the payload's columns and their Spark types.
        id, key: the columns that identify an event (a row), and that its records are keyed by.
        time: when it happened; for changes it may be empty.
        format: how values are written: json, avro or protobuf.
        database: of changes, the source database; empty: the one that has the name of the project's package.
    """

    name: str
    kind: str
    columns: Mapping[str, str]
    id: str
    key: str
    time: str
    format: str = "json"
    database: str = ""


def columns(texts: Iterable[str]) -> dict[str, str]:
    """The columns that texts of the form ``name:TYPE`` say. Types may be in small letters, and have blanks in them.

    Raises:
        NotMade: one of the texts is not a column, or two have the same name.
    """
    named: dict[str, str] = {}
    for text in texts:
        name, _, kind = text.partition(":")
        kind = kind.upper().replace(" ", "")
        if not NAME.fullmatch(name) or not _TYPE.fullmatch(kind):
            raise NotMade(
                f"{text!r} is not a column: write name:TYPE, with small letters in the name, and one of STRING, BOOLEAN, "
                "INT, BIGINT, DOUBLE, DATE, TIMESTAMP, DECIMAL(p,s)."
            )
        if name in named:
            raise NotMade(f"The column {name} is named twice: name each column once.")
        named[name] = kind
    return named


def stream(settings: Settings, new: Stream) -> list[Path]:
    """Write the contract, its schema if it has one, its suite and its dbt source into the project.

    Returns:
        The files below it, the contract first.

    Raises:
        NotMade: the name is taken or cannot be one, or the columns do not fit together.
    """
    _check_name(settings, new.name, "contracts")
    _check_columns(new)
    _check_database(settings, new)
    required = list(dict.fromkeys([new.id, *([new.time] if new.kind == "events" else []), new.key]))
    words = {
        "name": new.name,
        "package": settings.package,
        "columns": _literal(new.columns),
        "descriptions": _descriptions(new),
        "id": new.id,
        "key": new.key,
        "time": new.time,
        "format": "",
        "source": new.database or settings.package,
        "database": f'    database="{new.database}",\n' if new.database else "",
        "required": ", ".join(f'"{name}"' for name in required) + ("," if len(required) == 1 else ""),
    }
    schema = {}
    if new.format != "json":
        text = schemas.schema(new.format, new.name, new.columns, required)
        file = f"{new.name}.{schemas.ENDINGS[new.format]}"
        schema[Path(f"spark/{settings.package}/contracts/{file}")] = text
        words["format"] = f'    format="{new.format}",\n    schema="{file}",\n'
    module = rendered(f"stream_{new.kind}.py", words)
    contract: Contract = _defined(module, "CONTRACT")
    texts = {
        Path(f"spark/{settings.package}/contracts/{new.name}.py"): module,
        **schema,
        Path(f"expectations/silver/{new.name}.json"): suites.of_stream(new.name, required, new.id),
        SOURCES: _with_sources(settings, [table for table in of_stream(contract) if table.layer == "silver"]),
    }
    return write(settings.project, texts)


def view(settings: Settings, name: str, reads: str, keyed: bool = False) -> list[Path]:
    """Write a view over an event stream, its suite, dbt source, oracle and unit test; returns the files, the view first.

    A windowed view counts the stream's rows by minute and key; a keyed one numbers them. Both are there to be changed.

    Raises:
        NotMade: the name is taken or cannot be one, or the stream does not exist or does not fit the templates.
    """
    package, kind = settings.package, "keyed" if keyed else "windowed"
    _check_name(settings, name, "views")
    contract = _contract(settings, reads)
    _check_input(contract, kind)
    by, id_ = contract.key[0], contract.unique_id[0]
    words = {
        "name": name,
        "package": package,
        "input": reads,
        "by": by,
        "by_type": contract.columns[by],
        "machine_key": by if contract.columns[by] == "STRING" else f"CAST({by} AS STRING)",
        "id": id_,
        "id_type": contract.columns[id_],
        "time": contract.event_time,
    }
    suite = (
        suites.of_machines(name, [id_], [by]) if keyed else suites.of_windows(name, ["window_start", by], ["events"])
    )
    module = rendered(f"view_{kind}.py", words)
    texts = {
        Path(f"spark/{package}/views/{name}.py"): module,
        Path(f"expectations/gold/{name}.json"): suite,
        Path(f"tests/{package}/oracles/{name}.py"): rendered(f"oracle_{kind}.py", words),
        Path(f"tests/{package}/unit/views/test_{name}.py"): rendered(f"test_{kind}.py", words),
        SOURCES: _with_sources(settings, [next(of_view(_defined(module, "VIEW"), {reads: contract}))]),
    }
    return write(settings.project, texts)


def _check_name(settings: Settings, name: str, where: str) -> None:
    if not NAME.fullmatch(name) or keyword.iskeyword(name):
        raise NotMade(f"{name!r} cannot be a name: use small letters, digits and underscores, a letter first.")
    path = f"spark/{settings.package}/{where}/{name}.py"
    if (settings.project / path).exists():
        raise NotMade(f"{name} is there already: see {path}.")


def _check_columns(new: Stream) -> None:
    if new.kind not in ("events", "changes"):
        raise NotMade(f"There is no kind {new.kind!r}: a stream is events or changes.")
    if new.kind == "changes" and new.format != "json":
        raise NotMade(f"Changes are Debezium's JSON: they cannot be in {new.format}.")
    for what, column in {"id": new.id, "key": new.key, "time": new.time}.items():
        if column not in new.columns and not (what == "time" and new.kind == "changes" and not column):
            raise NotMade(f"The {what} {column!r} is not one of the columns {', '.join(new.columns)}.")
    if new.time and new.columns[new.time] != "TIMESTAMP":
        raise NotMade(f"{new.time} is {new.columns[new.time]}: a stream's time is a TIMESTAMP.")


def _check_database(settings: Settings, new: Stream) -> None:
    if new.database and new.kind != "changes":
        raise NotMade("Only changes have a database: leave it out, or make a stream of --kind changes.")
    if new.database and new.database not in settings.sources:
        raise NotMade(
            f"There is no source database {new.database!r}: add it to [[tool.lockstep.databases]], or name one of "
            f"{', '.join(settings.sources)}."
        )


def _check_input(contract: Contract, kind: str) -> None:
    by, id_ = contract.key[0], contract.unique_id[0]
    if contract.kind == "changes":
        raise NotMade(
            f"{contract.name} has the changes of a table, which the templates do not read: write a Keyed view by hand, as "
            "docs/tables-in-views.md shows."
        )
    if by == id_:
        raise NotMade(
            f"The records of {contract.name} are keyed by their id {id_}, so every key has one row: there is nothing to "
            "count. Give the stream another key, or write the view by hand."
        )
    if taken := sorted({by, id_} & {*_OWN_COLUMNS[kind]}):
        raise NotMade(
            f"The template has a column {taken[0]} of its own, as {contract.name} has: write the view by hand."
        )


def _contract(settings: Settings, name: str) -> Contract:
    """The contract in the project's files, which may be newer than this process."""
    file = settings.project / f"spark/{settings.package}/contracts/{name}.py"
    spec = importlib.util.spec_from_file_location(name, file) if NAME.fullmatch(name) and file.exists() else None
    if spec is None or spec.loader is None:
        known = sorted(f.stem for f in file.parent.glob("*.py") if f.stem != "__init__")
        also = f", or name one of {', '.join(known)}" if known else ""
        raise NotMade(f"There is no stream {name!r}: make it with `lockstep new stream`{also}.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    contract: Contract = module.CONTRACT
    return contract


def _literal(named: Mapping[str, str]) -> str:
    """The columns as they stand in a contract."""
    lines = "".join(f'        "{name}": "{kind}",\n' for name, kind in named.items())
    return f"{{\n{lines}    }}"


def _descriptions(new: Stream) -> str:
    """What is known of the columns, as it stands in a contract, and a place for the rest."""
    known = {new.id: "The id of the event." if new.kind == "events" else "The id of the row."}
    if new.time:
        known[new.time] = "When it happened (UTC)." if new.kind == "events" else "The time of the row (UTC)."
    lines = "".join(f'        "{name}": "{text}",\n' for name, text in known.items())
    more = "        # And the others: what do they mean, in which unit, and when are they null?\n"
    return f"{{\n{lines}{more if new.columns.keys() - known else ''}    }}"


def _defined(module: str, constant: str) -> Any:
    """What a module defines that was made from a template."""
    names: dict[str, Any] = {}
    exec(compile(module, "<made>", "exec"), names)  # noqa: S102 - the text is the platform's own
    return names[constant]


def _with_sources(settings: Settings, tables: list[Table]) -> str:
    """The project's dbt sources with the new tables."""
    try:
        return with_tables((settings.project / SOURCES).read_text(), tables)
    except (KeyError, YAMLError) as error:
        layer, _, name = tables[0].name.partition(".")
        raise NotMade(
            f"{name} cannot be added to the source {layer!r} of {SOURCES} ({error}): "
            f"the file needs `- name: {layer}` under `sources`."
        ) from error
