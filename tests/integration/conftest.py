"""The servers that all integration tests share, and a stream and a view for each test."""

from tests.support.servers import (
    pytest_collection_modifyitems,
    pytest_xdist_make_scheduler,
    rows,
    settings,
    shop,
    spark,
    stack,
    stream,
    view,
)

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_xdist_make_scheduler",
    "rows",
    "settings",
    "shop",
    "spark",
    "stack",
    "stream",
    "view",
]
