"""Streams of a view's results, for tests of views that read them."""

from typing import Any

from lockstep.contracts.contract import Contract
from lockstep.definition.registry import VIEWS
from lockstep.definition.view import Definition


def results_of(view: Definition, name: str, **fields: Any) -> Contract:
    """The stream with all columns of a view's results; ``fields`` are of the contract."""
    given: dict[str, Any] = {"topic": name, "columns": dict(view.output_columns)} | fields
    return Contract(name, kind="changes", key=view.key, unique_id=view.key, view=view.name, **given)


# Not all columns, and in an order of its own.
PAGE_MINUTES = results_of(
    VIEWS["page_views_per_minute"],
    "page_minutes",
    topic="results.page_minutes",
    columns={"window_start": "TIMESTAMP", "window_end": "TIMESTAMP", "page": "STRING", "views": "BIGINT"},
    event_time="window_start",
)
