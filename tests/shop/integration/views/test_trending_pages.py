"""trending_pages ranks as counted by hand, and keeps its error bound when there are more pages than it can count exactly."""

import pytest
from tests.shop.integration.views.frames import start, transformed

from shop.views.trending_pages import VIEW

# What the view promises: exact below 10,000 pages, else too high by at most 0.03 % of the window's views.
EXACT_BELOW, ERROR = 10_000, 0.0003


def ranks(spark, views):
    rows = [row for row in transformed(spark, VIEW, views) if start(row) == "10:00"]
    return sorted(rows, key=lambda row: row["rank"])


def test_pages_are_ranked_by_views_and_then_by_name(spark):
    rows = ranks(spark, [(0, {"page": page}) for page in ("/product/B", "/product/A", "/", "/", "/cart")])
    assert [(row["rank"], row["page"], row["views"], row["exact"]) for row in rows] == [
        (1, "/", 2, True),
        (2, "/cart", 1, True),
        (3, "/product/A", 1, True),
        (4, "/product/B", 1, True),
    ]


@pytest.fixture
def popular():
    """Twelve popular pages and their views."""
    return {f"/popular/{n:02d}": 100 * (12 - n) for n in range(12)}


def many(popular, rare):
    """The views of the popular pages, and one view of each of many other pages."""
    pages = [*(page for page, views in popular.items() for _ in range(views)), *(f"/rare/{n}" for n in range(rare))]
    return [(0, {"page": page}) for page in pages]


def test_counts_are_exact_while_there_are_fewer_than_ten_thousand_pages(spark, popular):
    rows = ranks(spark, many(popular, EXACT_BELOW - 1 - len(popular)))
    assert {row["page"]: row["views"] for row in rows} == dict([*popular.items()][:10])
    assert {row["exact"] for row in rows} == {True}


def test_with_more_pages_the_counts_are_not_called_exact_and_keep_their_error_bound(spark, popular):
    views = many(popular, 4 * EXACT_BELOW)
    rows = ranks(spark, views)
    assert {row["exact"] for row in rows} == {False}
    assert [row["page"] for row in rows] == [*popular][:10]
    assert all(0 <= row["views"] - popular[row["page"]] <= row["views_error"] <= ERROR * len(views) for row in rows)
    assert {row["rank_error"] for row in rows} == {0}, "a hundred views lie between any two"
