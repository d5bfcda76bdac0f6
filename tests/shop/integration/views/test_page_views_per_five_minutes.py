"""page_views_per_five_minutes gives what was counted by hand."""

from tests.shop.integration.views.frames import start, transformed

from shop.views.page_views_per_five_minutes import VIEW


def test_a_view_counts_in_each_of_the_five_windows_that_contain_it(spark):
    views = [(0, {"page": "/"}), (4, {"page": "/"}), (4, {"page": "/cart"})]
    counts = {(start(row), row["page"]): row["views"] for row in transformed(spark, VIEW, views)}
    assert counts["09:56", "/"] == 1
    assert counts["10:00", "/"] == 2
    assert counts["10:04", "/cart"] == 1
    assert len(counts) == 9 + 5
