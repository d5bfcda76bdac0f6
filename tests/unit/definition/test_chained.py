"""A view may read the results of another: which streams of results are refused, and why."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.support.results import PAGE_MINUTES

from lockstep.contracts import CONTRACTS
from lockstep.contracts.contract import Contract
from lockstep.definition import Input, Keyed
from lockstep.definition.chained import made_from, problems
from lockstep.definition.registry import VIEWS, broken, chosen, with_results
from lockstep.errors import ViewRefused

FIRST = VIEWS["page_views_per_minute"]
OF_EVENTS = VIEWS["user_sessions"]
OF_TABLES = VIEWS["orders_with_customer"]


def counted(state: Any, event: Any) -> tuple[Any, list[dict[str, Any]]]:
    return state, [{"page": event.data["page"]}]


SECOND = Keyed(
    name="pages_in_total",
    columns={"page": "STRING"},
    key=("page",),
    allowed_lateness=FIRST.allowed_lateness,
    inputs=(Input("page_minutes", "page", ("page",), time="window_end"),),
    process=counted,
)


@pytest.fixture(autouse=True)
def chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The shop, with a stream of results and a view that reads it."""
    monkeypatch.setitem(CONTRACTS, PAGE_MINUTES.name, PAGE_MINUTES)
    monkeypatch.setitem(VIEWS, SECOND.name, SECOND)
    yield


def test_a_sound_chain_runs_and_is_named() -> None:
    assert broken() == {}
    assert chosen("pages_in_total") == [SECOND]
    assert made_from(SECOND) == (FIRST.name,)
    assert made_from(FIRST) == ()
    assert with_results(CONTRACTS.values()) == [(PAGE_MINUTES, FIRST)]


def test_fewer_columns_than_the_view_has_are_sound() -> None:
    columns = {name: kind for name, kind in PAGE_MINUTES.columns.items() if name != "views"}
    assert problems(replace(PAGE_MINUTES, columns=columns), VIEWS) == []


def without(name: str) -> dict[str, str]:
    return {column: kind for column, kind in PAGE_MINUTES.columns.items() if column != name}


NESTED = replace(FIRST, name="nested", columns={**FIRST.columns, "pages": "ARRAY<STRING>"})
SESSIONS = Contract(
    "sessions",
    "results.sessions",
    "changes",
    dict(OF_EVENTS.output_columns),
    OF_EVENTS.key,
    OF_EVENTS.key,
    "at",
    subject="user_id",
    view=OF_EVENTS.name,
)


REFUSED = {
    "no such view": (replace(PAGE_MINUTES, view="page_vues"), "there is none of this name"),
    "rows that are never final": (
        replace(PAGE_MINUTES, view=OF_TABLES.name, unique_id=OF_TABLES.key),
        "are never final, because it reads tables, and only final rows are published: read what it reads (orders, users)",
    ),
    "another key": (
        replace(PAGE_MINUTES, unique_id=("page",)),
        "its unique_id is (page), and the key of page_views_per_minute is (window_start, page): make them the same",
    ),
    "a column that is not there": (
        replace(PAGE_MINUTES, columns={**PAGE_MINUTES.columns, "visits": "BIGINT"}),
        "page_views_per_minute has no column visits: its columns are window_start, window_end, page, views",
    ),
    "another type": (
        replace(PAGE_MINUTES, columns={**PAGE_MINUTES.columns, "views": "INT"}),
        "its column views is INT, and that of page_views_per_minute is BIGINT: make it the same",
    ),
    "nested values": (
        replace(PAGE_MINUTES, view="nested", columns=NESTED.columns),
        "its column pages is ARRAY<STRING>, and only values that are not nested are published: leave it out",
    ),
    "no end of its windows": (replace(PAGE_MINUTES, columns=without("window_end")), "add window_end TIMESTAMP"),
    "no time of its rows": (
        replace(SESSIONS, columns={n: k for n, k in SESSIONS.columns.items() if n != "at"}),
        "it must have the column at, by which it is known which rows are final: add at TIMESTAMP",
    ),
    "a person whom an erasure would not find": (replace(SESSIONS, subject=""), 'set subject="user_id"'),
    "a person whom an erasure would leave in gold": (
        replace(PAGE_MINUTES, view="sensor_averages", subject="page"),
        "no stream of sensor_averages has one",
    ),
}


@pytest.mark.parametrize(("contract", "reason"), REFUSED.values(), ids=list(REFUSED))
def test_a_stream_that_cannot_have_the_results_is_refused_with_the_fix(
    monkeypatch: pytest.MonkeyPatch, contract: Contract, reason: str
) -> None:
    monkeypatch.setitem(VIEWS, "nested", NESTED)
    assert problems(SESSIONS, VIEWS) == []
    (problem,) = [found for found in problems(contract, VIEWS) if reason in found]
    assert problem


def test_with_the_first_view_gone_stream_and_readers_are_refused_and_all_others_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(VIEWS, FIRST.name)
    assert broken().keys() == {"stream page_minutes", "view pages_in_total"}
    with pytest.raises(
        ViewRefused, match="its stream page_minutes is refused: it has the results of the view page_views"
    ):
        chosen("pages_in_total")
    assert SECOND not in chosen("all")
    assert with_results(CONTRACTS.values()) == []


def reading(stream: str, name: str) -> Keyed:
    """A view that reads a stream as if it were a table."""
    return replace(SECOND, name=name, inputs=(Input(stream, "page", ("page",), time="window_end"),))


@pytest.mark.parametrize(
    ("names", "circle"),
    [(("a",), "a → a"), (("a", "b"), "a → b → a"), (("a", "b", "c"), "a → b → c → a")],
    ids=["itself", "two", "three"],
)
def test_views_that_read_each_other_are_refused_with_the_whole_circle(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], circle: str
) -> None:
    for name, read in zip(names, (*names[1:], names[0]), strict=True):
        monkeypatch.setitem(CONTRACTS, f"of_{name}", replace(PAGE_MINUTES, name=f"of_{name}", view=name))
        monkeypatch.setitem(VIEWS, name, reading(f"of_{read}", name))
    monkeypatch.setitem(VIEWS, "outside", reading("of_a", "outside"))
    (reason,) = problems(CONTRACTS["of_a"], VIEWS)
    assert f"would read its own results ({circle}), and could never begin" in reason
    assert broken().keys() == {
        *(f"stream of_{name}" for name in names),
        *(f"view {name}" for name in (*names, "outside")),
    }
