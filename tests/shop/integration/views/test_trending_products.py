"""trending_products ranks as counted by hand."""

from tests.shop.integration.views.frames import start, transformed

from shop.views.trending_products import VIEW


def test_products_are_ranked_by_views_and_then_by_name(spark):
    pages = ["/product/B", "/product/A", "/product/C", "/product/C", "/"]
    rows = [row for row in transformed(spark, VIEW, [(0, {"page": page}) for page in pages]) if start(row) == "10:00"]
    assert sorted((row["rank"], row["product_id"], row["views"]) for row in rows) == [
        (1, "C", 2),
        (2, "A", 1),
        (3, "B", 1),
    ]


def test_only_a_page_that_begins_with_product_is_one_of_a_product(spark):
    rows = transformed(spark, VIEW, [(0, {"page": "/help/product/A"}), (0, {"page": "/product/B/reviews"})])
    assert {row["product_id"] for row in rows} == {"B/reviews"}
