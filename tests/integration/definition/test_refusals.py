"""What only Spark knows of a view is asked before anything of it starts, in either layer."""

from dataclasses import replace

import pytest

from lockstep import lake, service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.definition import MapState
from lockstep.definition.mergeable import mergeable
from lockstep.definition.registry import VIEWS
from lockstep.definition.trial import ensure
from lockstep.errors import ViewRefused
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine

WINDOWED, KEYED = VIEWS["page_views_per_minute"], VIEWS["orders_in_eight_minutes"]
ENRICHED, HOPPING = VIEWS["page_views_enriched"], VIEWS["page_views_per_five_minutes"]


def _counts(state, event):
    state = state or {"views": {}}
    state["views"][event.id] = 1
    return state, [{"event_time": event.time, "event_id": event.id, "age": len(state["views"])}]


BAD = {
    "its key is not unique": (
        replace(WINDOWED, key=("window_start",)),
        "its key is not unique: two rows have {'window_start': '2026-01-01 00:00:00'}; add the column",
    ),
    "it gives other columns": (
        replace(WINDOWED, columns={**WINDOWED.columns, "views": "INT"}),
        "it gives window_start timestamp, window_end timestamp, page string, views bigint; make both the same",
    ),
    "it reads a column that is not there": (
        replace(WINDOWED, by={"page": "url"}),
        "it does not run in batch: [UNRESOLVED_COLUMN",
    ),
    "no stream can do what it does": (
        replace(WINDOWED, measures={"views": "count(DISTINCT user_id)"}),
        "it does not run as a live query: ",
    ),
    "the parts of a window do not make the window": (
        replace(HOPPING, measures={"views": mergeable("count(*)", "max({})")}),
        "its rows are others where a window is made of parts: ",
    ),
    "a machine's key is not unique": (
        replace(KEYED, key=("country",)),
        "its key is not unique: two rows have {'country': ",
    ),
    "a machine's rows have more columns": (
        replace(KEYED, columns={"country": "STRING"}, key=("at", "country"), column_descriptions={}),
        "its rows have the columns orders, which it does not declare",
    ),
    "a machine fails": (
        replace(KEYED, process=lambda _, event: (None, event.data["city"])),
        "its machine fails on rows that are made up (KeyError: 'city'",
    ),
    "a machine's state cannot be written": (
        replace(KEYED, process=lambda _, event: ({event.id}, []), **{"timer": lambda _: None}),
        "it does not run as a live query, which keeps states as JSON: a state cannot hold",
    ),
    "a machine reads entries that it does not name": (
        replace(ENRICHED, process=_counts, map_state=MapState("views", lambda event: (event.id,))),
        "its rows are others where process sees only the entries of views that touched names",
    ),
}


def test_a_view_that_cannot_run_is_refused_with_the_reason_and_the_fix(spark):
    for name, (view, reason) in BAD.items():
        with pytest.raises(ViewRefused) as refusal:
            ensure(spark, view)
        assert reason in str(refusal.value), name


def test_nothing_of_a_refused_view_is_started(spark, settings, stream, view, shop):
    shop.view("e", 1)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    bad = replace(view, key=("window_start",))
    with pytest.raises(ViewRefused):
        roll_up(spark, settings, bad, "run")
    with connect(settings, "live") as own, pytest.raises(ViewRefused):
        service.start(own, settings, bad)
    assert not lake.exists(settings, f"gold.{view.name}")
    assert not lake.exists(settings, f"live.{view.name}")
