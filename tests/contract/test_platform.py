"""The platform's code knows nothing of the shop, asks no view of which kind it is, and has no circle of imports."""

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT

SOURCES = CHECKOUT / "spark"
PLATFORM = [SOURCES / "lockstep", CHECKOUT / "dags", CHECKOUT / "infra"]
# Streams of the shop whose names are ordinary English words; as tables and topics they are still names.
ENGLISH = {"follows", "orders", "requests", "users"}
LAYER = r"(?:bronze|silver|quarantine|gold|live|late|serving|marts|public)"
# Only definition/ knows that there are kinds of views.
KINDS = re.compile(r"isinstance\([^)]*\b(?:Keyed|Windowed)\b")

Graph = dict[str, set[str]]


def text_files(*roots: Path) -> Iterator[Path]:
    """The files below these folders that people write."""
    for root in roots:
        yield from (file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def names_of_the_shop() -> list[str]:
    """The names of its streams and views, and its own."""
    folders = (SOURCES / "shop" / folder for folder in ("contracts", "views"))
    return ["shop", *(file.stem for folder in folders for file in folder.glob("*.py") if file.stem != "__init__")]


def lines_with(pattern: re.Pattern[str], *roots: Path) -> list[str]:
    """The lines below these folders in which the pattern occurs, each with its place."""
    return [
        f"{file.relative_to(CHECKOUT)}:{number}: {line.strip()}"
        for file in text_files(*roots)
        for number, line in enumerate(file.read_text(errors="ignore").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_stream_or_view_of_the_shop_is_named_in_the_platform() -> None:
    names = names_of_the_shop()
    assert len(names) > 30
    words = "|".join(sorted({*names} - ENGLISH))
    assert lines_with(re.compile(rf"\b(?:{words})\b", re.IGNORECASE), *PLATFORM) == []


def test_no_table_of_the_shop_is_named_in_the_platform_even_where_its_name_is_an_english_word() -> None:
    assert names_of_the_shop() and {*names_of_the_shop()} >= ENGLISH
    quoted = "|".join(sorted(ENGLISH))
    assert lines_with(re.compile(rf"\b{LAYER}\.(?:{quoted})\b|[\"'](?:{quoted})[\"']"), *PLATFORM) == []


def test_only_the_definitions_know_kinds_of_views() -> None:
    asked = lines_with(KINDS, SOURCES / "lockstep", CHECKOUT / "dags")
    assert [line for line in asked if not line.startswith("spark/lockstep/definition/")] == []


def modules() -> dict[str, Path]:
    """The modules of the platform and of the shop, by their dotted names."""
    found = {}
    for file in SOURCES.rglob("*.py"):
        parts = file.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def for_types_only(tree: ast.AST) -> set[ast.AST]:
    """What stands below ``if TYPE_CHECKING``."""
    blocks = (node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    return {node for block in blocks for statement in block.body for node in ast.walk(statement)}


def imported(source: str, known: set[str]) -> set[str]:
    """The known modules that a source imports, inside of functions too, but not those that only its types need."""
    tree = ast.parse(source)
    skipped = for_types_only(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= submodules & known if submodules <= known else (submodules & known) | {node.module}
    return found & known


def import_graph() -> Graph:
    files = modules()
    return {name: imported(file.read_text(), {*files}) - {name} for name, file in files.items()}


def circle(graph: Graph) -> list[str]:
    """One circle of the graph, or nothing."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_a_detour_not_even_inside_of_a_function() -> None:
    graph = import_graph()
    assert sum(map(len, graph.values())) > 500
    assert circle(graph) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a.b import name", {"a.b"}),
        ("def later():\n    from a import b", {"a.b"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import b", set()),
    ],
)
def test_the_graph_has_imports_of_every_form_but_those_for_types(source: str, expected: set[str]) -> None:
    assert imported(source, {"a", "a.b"}) == expected


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
