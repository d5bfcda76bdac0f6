"""The server's catalog, which is in memory: derived from the lake by the first client after the server's start."""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.batch import late
from lockstep.control import lease
from lockstep.definition.check import problems
from lockstep.serving import merged
from lockstep.views import named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


def derive(spark: "SparkSession", settings: "Settings") -> None:
    """Make the lake's tables, and the late rows and merged answers of the views that run, known by name.

    One client does it and the others wait: two that create the same view at once do collide, OR REPLACE or not.
    """
    with lease(settings, late.CATALOG, "derive"):
        if lake.register(spark, settings):
            # A view that is refused when it starts must not keep the clients of all others out.
            views = [view for view in named(settings.views) if not problems(view)]
            late.define_all(spark, views)
            merged.publish(spark, settings, views)
