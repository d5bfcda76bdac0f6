"""The data docs: HTML pages with the expectations of each table and the newest result of its gate."""

from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.quality.suites import gated, load

if TYPE_CHECKING:
    from lockstep.settings import Settings


def build(settings: "Settings") -> Path:
    """Build the pages from the suites and the newest results. Takes seconds, and needs neither Spark nor a result.

    Returns:
        The index page.
    """
    from great_expectations.core import ExpectationSuite

    from lockstep.quality.engine import context as open_context

    context = open_context(settings)
    for table in gated(settings):
        context.suites.add_or_update(ExpectationSuite(**load(settings, table)))
    context.build_data_docs()
    return settings.home / "data_docs" / "index.html"
