"""dbt's sources with one more table. The rest of the file keeps its comments, its order and its quotes. Pure."""

import sys
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import FoldedScalarString, LiteralScalarString
from ruamel.yaml.tokens import CommentToken
from ruamel.yaml.util import load_yaml_guess_indent

# Where ruamel.yaml keeps the comment that follows an entry of a mapping, and of a list.
_AFTER_VALUE, _AFTER_ITEM = 2, 0


def with_table(text: str, source: str, name: str, description: str) -> str:
    """The sources file with a table more, in its alphabetical place among those of the source.

    Raises:
        KeyError: the file has no such source.
    """
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize  # lines are as long as their writer made them
    yaml.explicit_start = text.startswith("---")
    document, indent, offset = load_yaml_guess_indent(text, yaml=yaml)
    yaml.indent(mapping=2, sequence=indent, offset=offset)
    tables = _tables(document, source)
    place = next((n for n, table in enumerate(tables) if table["name"] > name), len(tables))
    table = CommentedMap(name=name, description=description)
    if place:
        _move_comment(tables, place - 1, table)
    tables.insert(place, table)
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


def _move_comment(tables: Any, key: Any, table: CommentedMap) -> None:
    """Blank lines and comments after an entry hang on its last value: hang those of ``tables[key]`` on the new table.

    So a comment stays above what it was written for, be it the next table or the next source.
    """
    node = tables
    while isinstance(node[key], CommentedMap | CommentedSeq) and node[key] and not node[key].fa.flow_style():
        node = node[key]
        key = next(reversed(node)) if isinstance(node, CommentedMap) else len(node) - 1
    slots = node.ca.items.get(key)
    slot = _AFTER_VALUE if isinstance(node, CommentedMap) else _AFTER_ITEM
    comment = slots[slot] if slots else None
    if comment is None:
        return
    # The rest of the value's own line stays with it; a block of text ends with its line.
    own, _, between = comment.value.partition("\n")
    if isinstance(node[key], FoldedScalarString | LiteralScalarString):
        own, between = "", comment.value
    if between:
        slots[slot] = CommentToken(f"{own}\n", comment.start_mark) if own else None
        table.ca.items["description"] = [None, None, CommentToken(f"\n{between}", comment.start_mark), None]
