"""dbt's generic test ``agrees_with_live``, without dbt and Spark: DuckDB runs what it says."""

from datetime import date, datetime
from typing import Any

import duckdb
import pytest
from dbt_common.clients.jinja import get_environment

from lockstep.resources import resource

FIRST, SECOND, THIRD = (date(2026, 11, day) for day in (19, 20, 21))
Mart = list[tuple[date, str, int]]
ARGUMENTS: dict[str, Any] = {
    "day": "day",
    "view": "views",
    "figures": {"views": "sum(n)"},
    "at": "seen",
    "by": ["page"],
}


@pytest.fixture
def macro() -> Any:
    """The macro of the test. The run builds the first two days."""
    file = resource("dbt") / "macros" / "agrees_with_live.sql"
    context = {
        "config": lambda severity: {"warn": ""}[severity],
        "source": lambda schema, table: f"{schema}.{table}",
        "interval_of_run": lambda column: f"{column} < '{THIRD}'",
    }
    return get_environment().from_string(file.read_text()).make_module(context).dbt_macro__test_agrees_with_live


def differing(macro: Any, mart: Mart, live: Mart, compared: date | None, **arguments: Any) -> list[tuple[Any, ...]]:
    """What the test returns.

    Args:
        live: the same as in the mart, each row at noon.
        compared: until when live and batch were compared; None: never.
    """
    database = duckdb.connect()
    database.execute("create schema live; create schema ops")
    database.execute("create table mart (day date, page text, views bigint, twice bigint as (2 * views))")
    database.execute("create table live.views (seen timestamp, page text, n bigint)")
    database.execute("create table ops.reconciliation (view text, window_end timestamp)")
    noon = [(datetime(day.year, day.month, day.day, 12), page, n) for day, page, n in live]
    ends = [("views", compared), ("others", THIRD)] if compared else [("others", THIRD)]
    for table, rows in (("mart (day, page, views)", mart), ("live.views", noon), ("ops.reconciliation", ends)):
        for row in rows:
            database.execute(f"insert into {table} values ({', '.join('?' * len(row))})", row)
    return sorted(database.execute(macro("mart", **ARGUMENTS | arguments)).fetchall())


def test_days_on_which_the_mart_has_the_sums_of_live_agree(macro: Any) -> None:
    mart, live = [(FIRST, "a", 3), (SECOND, "b", 1)], [(FIRST, "a", 1), (FIRST, "a", 2), (SECOND, "b", 1)]
    assert differing(macro, mart, live, THIRD) == []


def test_a_day_is_named_with_both_figures_where_they_differ_or_one_side_has_none(macro: Any) -> None:
    mart, live = (
        [(FIRST, "a", 3), (FIRST, "b", 1), (SECOND, "a", 5)],
        [(FIRST, "a", 3), (FIRST, "b", 2), (SECOND, "c", 7)],
    )
    assert differing(macro, mart, live, THIRD) == [
        (FIRST, "b", 1, 2),
        (SECOND, "a", 5, None),
        (SECOND, "c", None, 7),
    ]


def test_a_day_is_looked_at_once_live_and_batch_were_compared_to_its_end(macro: Any) -> None:
    mart: Mart = [(FIRST, "a", 3), (SECOND, "a", 3)]
    assert differing(macro, mart, [], None) == []
    assert differing(macro, mart, [], FIRST) == []
    assert differing(macro, mart, [], SECOND) == [(FIRST, "a", 3, None)]


def test_a_day_that_the_run_has_not_built_is_left_out(macro: Any) -> None:
    assert differing(macro, [(THIRD, "a", 3)], [(THIRD, "b", 4)], date(2026, 12, 1)) == []


def test_without_by_the_sums_of_the_day_are_compared(macro: Any) -> None:
    mart, live = [(FIRST, "a", 1), (FIRST, "b", 3), (SECOND, "a", 1)], [(FIRST, "c", 4), (SECOND, "a", 2)]
    assert differing(macro, mart, live, THIRD, by=[]) == [(SECOND, 1, 2)]


def test_one_of_several_figures_is_enough(macro: Any) -> None:
    figures = {"views": "sum(n)", "twice": "2 * sum(n) + 1"}
    assert differing(macro, [(FIRST, "a", 3)], [(FIRST, "a", 3)], THIRD, figures=figures) == [(FIRST, "a", 3, 3, 6, 7)]
