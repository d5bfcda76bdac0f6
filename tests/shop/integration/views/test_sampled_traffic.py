"""sampled_traffic gives what was counted by hand."""

from tests.shop.integration.views.frames import start, transformed

from shop.views.sampled_traffic import VIEW


def test_views_between_two_windows_are_not_counted(spark):
    rows = transformed(spark, VIEW, [(minute, {"page": "/"}) for minute in (0, 5, 6, 9, 10, 15, 16, 20)])
    assert sorted((start(row), row["views"]) for row in rows) == [("10:00", 2), ("10:10", 2), ("10:20", 1)]
    assert {row["window_end"] - row["window_start"] for row in rows} == {VIEW.size}
