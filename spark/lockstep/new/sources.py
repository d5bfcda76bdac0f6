"""dbt's sources, with what the dictionary says. The rest of the file keeps its comments, its order and its quotes. Pure."""

import sys
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString
from ruamel.yaml.tokens import CommentToken
from ruamel.yaml.util import load_yaml_guess_indent

from lockstep import dictionary
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, silver_of
from lockstep.dictionary import Column, Table, ops

# Where ruamel.yaml keeps the comment that follows an entry of a mapping, and of a list.
_AFTER_VALUE, _AFTER_ITEM = 2, 0


def described(text: str) -> str:
    """The sources file with all tables that models may read, as the contracts and views describe them.

    Of live and ops, those that the file names.

    Raises:
        KeyError: the file lacks the source ``silver`` or ``gold``.
    """
    of_streams = map(Tables.of, CONTRACTS.values())
    logs = (table for tables in of_streams for table in (tables.log, tables.history) if table)
    read = {*logs, *map(silver_of, CONTRACTS.values()), *map(gold_of, VIEWS.values()), *_named(text, ("live", "ops"))}
    platforms = (_of_ops(name) for name in sorted(ops.DESCRIPTIONS))
    return with_tables(text, (table for table in [*dictionary.tables(), *platforms] if table.name in read))


def _named(text: str, sources: Iterable[str]) -> Iterator[str]:
    for source in (YAML(typ="safe").load(text) or {}).get("sources") or ():
        if source["name"] in sources:
            yield from (f"{source['name']}.{table['name']}" for table in source.get("tables") or ())


def _of_ops(name: str) -> Table:
    return Table(name, ops.DESCRIPTIONS[name], tuple(Column(c, "", said) for c, said in ops.COLUMNS[name].items()))


def with_tables(text: str, tables: Iterable[Table]) -> str:
    """The sources file in which these tables and their columns have their descriptions, and dbt knows the times of their rows.

    A table that is missing is added in its alphabetical place among those of its layer. What else the file says stays: other
    tables and columns, tests, and the description of what the dictionary does not describe.

    Raises:
        KeyError: the file has no source for a layer.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize  # lines are as long as their writer made them
    yaml.explicit_start = text.startswith("---")
    document, indent, offset = load_yaml_guess_indent(text, yaml=yaml)
    yaml.indent(mapping=2, sequence=indent, offset=offset)
    for table in tables:
        _put(_tables(document, table.layer), table)
    written = StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def _tables(document: Any, source: str) -> Any:
    for entry in (document or {}).get("sources") or ():
        if entry["name"] == source:
            if not entry.get("tables"):
                entry["tables"] = CommentedSeq()
            return entry["tables"]
    raise KeyError(source)


def _put(tables: Any, table: Table) -> None:
    name = table.name.partition(".")[2]
    place = next((n for n, known in enumerate(tables) if known["name"] >= name), len(tables))
    is_new = place == len(tables) or tables[place]["name"] != name
    # A comment stays above what it was written for, be it the next table or the next source.
    before = place - 1 if is_new else place
    between = _take(tables, before) if before >= 0 else ""
    if is_new:
        tables.insert(place, CommentedMap(name=name))
    _describe(tables[place], table.description)
    _configure(tables[place], table)
    for column in table.columns:
        if column.description:
            _describe(_column(tables[place], column.name), column.description)
    if between:
        _hang(tables, place, between)


def _column(table: Any, name: str) -> Any:
    if not table.get("columns"):
        table["columns"] = CommentedSeq()
    known = next((column for column in table["columns"] if column["name"] == name), None)
    if known is None:
        known = CommentedMap(name=name)
        table["columns"].append(known)
    return known


def _describe(entry: Any, text: str) -> None:
    # The lines of a text may be broken elsewhere.
    if text and entry.get("description", "").split() != text.split():
        if "description" in entry:
            entry["description"] = text
        else:
            entry.insert(1, "description", text)


def _configure(entry: Any, table: Table) -> None:
    """Say when rows happened (``event_time``) and when they were loaded (``loaded_at_field``), where the file does not say it.

    A sample takes what happened lately. Of a captured table, and of a view that holds one row for each key, it would leave out
    rows that are still true.
    """
    names = {column.name for column in table.columns}
    view = VIEWS.get(table.name.partition(".")[2]) if table.layer != "silver" else None
    is_current = "_op" in names or (view is not None and view.upserts)
    loaded = "_arrival" if table.layer == "silver" and "_arrival" in names else table.time
    times = {"event_time": "" if is_current else table.time, "loaded_at_field": loaded}
    missing = {name: column for name, column in times.items() if column and name not in entry.get("config", {})}
    if missing and "config" not in entry:
        place = 2 if "description" in entry else 1
        entry.insert(place, "config", CommentedMap())
    for name, column in missing.items():
        entry["config"][name] = column


def _last(node: Any, key: Any) -> tuple[Any, Any]:
    """The last value in ``node[key]``: where blank lines and comments hang that follow it."""
    while isinstance(node[key], CommentedMap | CommentedSeq) and node[key] and not node[key].fa.flow_style():
        node = node[key]
        key = next(reversed(node)) if isinstance(node, CommentedMap) else len(node) - 1
    return node, key


def _slots(node: Any, key: Any) -> tuple[list[Any], int]:
    slots = node.ca.items.setdefault(key, [None, None, None, None])
    return slots, _AFTER_VALUE if isinstance(node, CommentedMap) else _AFTER_ITEM


def _take(tables: Any, index: int) -> str:
    """Take away the blank lines and comments after an entry. The rest of its last line stays with it."""
    node, key = _last(tables, index)
    slots, slot = _slots(node, key)
    if slots[slot] is None:
        return ""
    own, _, between = slots[slot].value.partition("\n")
    if isinstance(node[key], FoldedScalarString | LiteralScalarString):
        # A block of text ends with its line.
        own, between = "", slots[slot].value
    if between:
        slots[slot] = CommentToken(f"{own}\n", slots[slot].start_mark) if own else None
    return str(between)


def _hang(tables: Any, index: int, between: str) -> None:
    """Put blank lines and comments after an entry."""
    node, key = _last(tables, index)
    slots, slot = _slots(node, key)
    is_block = isinstance(node[key], FoldedScalarString | LiteralScalarString)
    own = slots[slot].value if slots[slot] else "" if is_block else "\n"
    slots[slot] = CommentToken(own + between, CommentMark(0))
