"""The oracles are independent: they share no code with the platform and the views."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT

ORACLES = CHECKOUT / "tests/shop/oracles"
OWN = "tests.shop.oracles"


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, in functions too."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("file", sorted(ORACLES.glob("*.py")), ids=lambda file: file.stem)
def test_an_oracle_imports_only_the_standard_library_and_other_oracles(file: Path) -> None:
    others = {name for name in imported(file) if name.partition(".")[0] not in sys.stdlib_module_names}
    assert {name for name in others if name != OWN and not name.startswith(f"{OWN}.")} == set()
    assert "importlib" not in imported(file), "an import that this test cannot see"
