"""The data docs: HTML pages with what each table means, its expectations, and the newest result of its gate."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import dictionary
from lockstep.dictionary import Texts
from lockstep.quality.suites import gated, load

if TYPE_CHECKING:
    from lockstep.settings import Settings


def build(settings: "Settings") -> Path:
    """Build the pages from the suites and the newest results. Takes seconds, and needs neither Spark nor a result.

    Returns:
        The index page.
    """
    from great_expectations.core import ExpectationSuite

    from lockstep.quality.engine import context as open_context

    context = open_context(settings)
    for table in gated(settings):
        suite = load(settings, table)
        context.suites.add_or_update(ExpectationSuite(**suite | {"notes": _notes(table, suite)}))
    context.build_data_docs()
    return settings.home / "data_docs" / "index.html"


def _notes(table: str, suite: Mapping[str, Any]) -> list[str]:
    """What the page of a suite says in words (Markdown): the table, its columns, and the suite's own notes."""
    said, own = dictionary.texts(table) or Texts(), suite.get("notes") or []
    columns = "\n".join(f"- `{name}`: {text}" for name, text in said.columns.items())
    return [note for note in (said.description, columns, *([own] if isinstance(own, str) else own)) if note]
