"""A contract of a view's results that contradicts itself is refused with the fix."""

from dataclasses import replace
from typing import Any

import pytest

from lockstep.contracts.contract import Contract

SOUND = Contract(
    "page_minutes",
    "results.page_minutes",
    "changes",
    {"window_start": "TIMESTAMP", "page": "STRING"},
    ("window_start", "page"),
    ("window_start", "page"),
    "window_start",
    view="page_views_per_minute",
)


def test_results_are_changes_that_nobody_captures() -> None:
    assert SOUND.problems == []
    assert not SOUND.is_captured
    assert replace(SOUND, view="").is_captured
    assert not replace(SOUND, view="", kind="events").is_captured


@pytest.mark.parametrize(
    ("changed", "fix"),
    [
        ({"kind": "events"}, "set kind to changes"),
        ({"key": ("page",)}, "set key to what unique_id is"),
        ({"database": "results"}, "leave database out"),
        ({"pii": ("page",)}, "tokens already (page): leave pii out"),
    ],
    ids=["as events", "under another key", "of a database", "with tokens of tokens"],
)
def test_what_contradicts_itself_is_refused_with_the_fix(changed: dict[str, Any], fix: str) -> None:
    (problem,) = replace(SOUND, **changed).problems
    assert fix in problem
