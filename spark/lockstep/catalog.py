"""The names of tables in the Spark server. They are in its memory, so the first client after its start registers them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockstep import lake, session
from lockstep.batch import late
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition.check import problems
from lockstep.definition.registry import named
from lockstep.marts import published
from lockstep.refine import history
from lockstep.serving import merged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


@contextmanager
def connect(settings: "Settings", name: str, session_id: str | None = None) -> "Iterator[SparkSession]":
    """Open a session in which all tables can be read by name. For entry points.

    Args:
        name: the user that the server's UI shows, such as ``ingest``.
        session_id: a fixed UUID, for a client that will open the same session again. Such a session is not closed.
    """
    with session.connect(settings, name, session_id) as spark:
        # In an environment, statements compare its tables with those of production.
        for lake_of in [settings.production, settings] if settings.env else [settings]:
            if not lake.registered(spark, lake_of):
                derive(spark, lake_of)
        yield spark


def derive(spark: "SparkSession", settings: "Settings") -> None:
    """Register the lake's tables, the history of each captured table, and of each view that runs its late rows and merged answer;
    and the published marts.

    One client does it, and the others wait for the lease: Spark fails if two clients create the same view at once, also with
    OR REPLACE.
    """
    with lease(settings, lake.CATALOG, "derive"):
        if lake.register(spark, settings):
            # Leave out a view that is not valid: it must not stop the clients of the other views.
            views = [view for view in named(settings.views) if not problems(view)]
            history.define(spark, settings, CONTRACTS.values())
            late.define_all(spark, settings, views)
            merged.publish(spark, settings, views)
            published.show(spark, settings)
