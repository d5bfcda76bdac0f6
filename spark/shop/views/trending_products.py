"""The ten products with the most page views in the last hour, every five minutes.

Counts are exact while a window has fewer than 10,000 products. Beyond that ``exact`` is false, and a count may be too high by
``views_error``, which is 0.03 % of the window's views.
"""

from datetime import timedelta

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import COUNT, counts_of, ranking

SIZE, SLIDE = timedelta(hours=1), timedelta(minutes=5)
DISTINCT = 10_000
# The id of a product follows it in the address of a page.
PAGE = "/product/"

VIEW = Windowed(
    name="trending_products",
    description="The ten most viewed products of an hour, every five minutes.",
    input="page_views",
    where=f"startswith(page, '{PAGE}')",
    measures={"all": COUNT, "counts": counts_of(f"substring(page, {len(PAGE) + 1})", DISTINCT)},
    result=ranking("product_id", highest=10, distinct=DISTINCT),
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "rank": "INT",
        "product_id": "STRING",
        "views": "BIGINT",
        "exact": "BOOLEAN",
        "views_error": "BIGINT",
        "rank_error": "INT",
    },
    column_descriptions={
        "rank": "The place among the ten, from 1.",
        "product_id": "The number of the product, from the path of its page.",
        "views": "How many views it had in the window; at most views_error too high.",
        "exact": "Whether the counts are exact. They are while the window has fewer than 10,000 products.",
        "views_error": "By how much views may be too high; 0: it is exact.",
        "rank_error": "How many other products may have this rank instead; 0: none.",
    },
    key=("window_start", "rank"),
    approximate={"views": "views_error", "product_id": "rank_error"},
    size=SIZE,
    slide=SLIDE,
    allowed_lateness=timedelta(seconds=5),
)
