"""The ten pages with the most views in the last fifteen minutes, every minute.

Counts are exact while a window has fewer than 10,000 pages. Beyond that ``exact`` is false, and a count may be too high by
``views_error``, which is 0.03 % of the window's views.
"""

from datetime import timedelta

from lockstep.definition.windowed import Windowed
from lockstep.definition.windows import COUNT, counts_of, ranking

SIZE, SLIDE = timedelta(minutes=15), timedelta(minutes=1)
DISTINCT = 10_000

VIEW = Windowed(
    name="trending_pages",
    description="The ten most viewed pages of fifteen minutes, every minute.",
    input="page_views",
    measures={"all": COUNT, "counts": counts_of("page", DISTINCT)},
    result=ranking("page", highest=10, distinct=DISTINCT),
    columns={
        "window_start": "TIMESTAMP",
        "window_end": "TIMESTAMP",
        "rank": "INT",
        "page": "STRING",
        "views": "BIGINT",
        "exact": "BOOLEAN",
        "views_error": "BIGINT",
        "rank_error": "INT",
    },
    column_descriptions={
        "rank": "The place among the ten, from 1.",
        "views": "How many views it had in the window; at most views_error too high.",
        "exact": "Whether the counts are exact. They are while the window has fewer than 10,000 pages.",
        "views_error": "By how much views may be too high; 0: it is exact.",
        "rank_error": "How many other pages may have this rank instead; 0: none.",
    },
    key=("window_start", "rank"),
    approximate={"views": "views_error", "page": "rank_error"},
    size=SIZE,
    slide=SLIDE,
    allowed_lateness=timedelta(seconds=5),
)
