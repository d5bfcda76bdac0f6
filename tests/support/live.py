"""Views that run live until they have everything."""

from typing import TYPE_CHECKING

from lockstep import service
from lockstep.catalog import connect

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings


def run_live(settings: "Settings", *views: "View") -> None:
    """Run the views one after another, each in a query of its own, until it has everything."""
    for view in views:
        with connect(settings, "live") as spark:
            running = service.start(spark, settings, view)
            try:
                running.processAllAvailable()
            finally:
                running.stop()
