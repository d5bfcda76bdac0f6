"""page_views_per_minute gives what was counted by hand."""

from tests.shop.integration.views.frames import start, transformed

from shop.views.page_views_per_minute import VIEW


def test_each_view_counts_in_its_minute_and_for_its_page(spark):
    minutes = [0.25, 0.75, 1.17, 1.83, 2.33]
    rows = transformed(spark, VIEW, [*((m, {"page": "/"}) for m in minutes), (1.5, {"page": "/cart"})])
    assert sorted((start(row), row["page"], row["views"]) for row in rows) == [
        ("10:00", "/", 2),
        ("10:01", "/", 2),
        ("10:01", "/cart", 1),
        ("10:02", "/", 1),
    ]


def test_a_view_at_the_end_of_a_minute_counts_in_the_next_one(spark):
    assert [start(row) for row in transformed(spark, VIEW, [(1, {"page": "/"})])] == ["10:01"]
