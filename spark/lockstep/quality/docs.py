"""The data docs: a page for each table with its suite and the history of its gate, and an index. They need no network.

Each page has its data, script and style in itself, so it can be opened as a file, and be sent to somebody. A gate writes the
pages of the tables that it has checked, and reads no table: what it needs of the past is in ``<home>/data_docs/history``.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import atomic_files, dictionary
from lockstep.dictionary import Texts
from lockstep.quality.history import History, empty, with_outcomes
from lockstep.quality.suites import gated
from lockstep.suite_files import SuiteMissing, read, severity_of, text_of

if TYPE_CHECKING:
    from lockstep.quality.outcomes import Outcome
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
_SITE = Path(__file__).with_name("site")


def add(settings: "Settings", outcomes: "Iterable[Outcome]", run_id: str) -> None:
    """Add the outcomes of a gate to the pages of their tables. The caller holds the lease of ``ops.quality``.

    A page that cannot be written is logged, and fails no gate.
    """
    try:
        for outcome in outcomes:
            _write_table(settings, with_outcomes(_history(settings, outcome.table), [(outcome, run_id)]))
        _write_index(settings)
    except OSError as error:
        log.warning("The data docs were not written: %s. `lockstep quality docs` writes them again.", error)


def rebuild(settings: "Settings", found: "Iterable[tuple[Outcome, str]]") -> Path:
    """Write all pages from outcomes, such as those of ``ops.quality``: each with the id of its run. The index page."""
    by_table: dict[str, list[tuple[Outcome, str]]] = {table: [] for table in gated(settings)}
    for outcome, run_id in found:
        by_table.setdefault(outcome.table, []).append((outcome, run_id))
    for table, of_table in by_table.items():
        _write_table(settings, with_outcomes(empty(table), of_table))
    return _write_index(settings)


def page_of(settings: "Settings", table: str) -> Path:
    """The page of a table."""
    return settings.home / "data_docs" / "tables" / f"{table}.html"


def _history_file(settings: "Settings", table: str) -> Path:
    return settings.home / "data_docs" / "history" / f"{table}.json"


def _history(settings: "Settings", table: str) -> History:
    try:
        return dict(json.loads(_history_file(settings, table).read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return empty(table)


def _write_table(settings: "Settings", history: History) -> None:
    table = history["table"]
    texts = dictionary.texts(table) or Texts()
    meaning = {"description": texts.description, "columns": dict(texts.columns), **_suite(settings, table)}
    atomic_files.replace(_history_file(settings, table), json.dumps(history, separators=(",", ":")).encode())
    atomic_files.replace(page_of(settings, table), _page("table", table, {**history, **meaning}).encode())


def _suite(settings: "Settings", table: str) -> dict[str, Any]:
    """The suite as it is now. One that is gone or broken has no expectations, and its page stays."""
    try:
        suite = read(settings, table)
    except SuiteMissing as error:
        return {"suite": [], "notes": str(error)}
    notes = suite.get("notes") or []
    expectations = [
        {"text": text_of(one["type"], one["kwargs"]), "severity": severity_of(one).value}
        for one in suite["expectations"]
    ]
    return {"suite": expectations, "notes": notes if isinstance(notes, str) else " ".join(notes)}


def _write_index(settings: "Settings") -> Path:
    tables = []
    for table in sorted({*gated(settings), *(f.stem for f in _history_file(settings, "").parent.glob("*.json"))}):
        history = _history(settings, table)
        newest = next(iter(history["runs"]), None)
        kept = ("run", "at", "success", "warned", "rows")
        tables.append(
            {
                "table": table,
                "newest": newest and {name: newest[name] for name in kept},
                "checks": len(newest["checks"]) if newest else 0,
                "failed": [check[5] for check in newest["checks"] if not check[1]] if newest else [],
                "days": history["days"],
            }
        )
    index = settings.home / "data_docs" / "index.html"
    has_dbt = (settings.home / "dbt_docs" / "index.html").exists()
    atomic_files.replace(index, _page("index", "Data docs", {"tables": tables, "dbt": has_dbt}).encode())
    return index


def _page(kind: str, title: str, data: Mapping[str, Any]) -> str:
    # In a script, only the end of the element would be read as HTML.
    embedded = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    filled = {"title": title, "style": _asset("site.css"), "script": _asset(f"{kind}.js"), "shared": _asset("site.js")}
    page = _asset("page.html")
    for name, text in {**filled, "data": embedded}.items():
        page = page.replace(f"<!--{name}-->", text)
    return page


@cache
def _asset(name: str) -> str:
    return (_SITE / name).read_text()
