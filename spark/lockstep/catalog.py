"""The server's catalog, which is in memory: derived from the lake by the first client after the server's start."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lockstep import lake, session
from lockstep.batch import late
from lockstep.control.leases import lease
from lockstep.definition.check import problems
from lockstep.definition.registry import named
from lockstep.serving import merged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


@contextmanager
def connect(settings: "Settings", name: str, session_id: str | None = None) -> "Iterator[SparkSession]":
    """Open a session as :func:`lockstep.session.connect` does, with all tables known by name. For entry points.

    Args:
        name: the user that the server's UI shows, such as ``ingest``.
        session_id: a fixed UUID, for a client that wants to find its session again; such a session is left open.
    """
    with session.connect(settings, name, session_id) as spark:
        if not lake.registered(spark):
            derive(spark, settings)
        yield spark


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
