"""The names of tables in the Spark server. They are in its memory, so the first client after its start registers them."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

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


log = logging.getLogger(__name__)


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
            for contract in CONTRACTS.values():
                _define(contract.name, partial(history.define, spark, settings, [contract]))
            for view in views:
                _define(view.name, partial(late.define, spark, settings, view))
            merged.publish_or_log(spark, settings, views)
            published.show(spark, settings)


def _define(name: str, define: Callable[[], None]) -> None:
    """Create the SQL views of a stream or a view, if their tables can be read: one that is torn must not stop the others."""
    try:
        define()
    except PySparkException as error:
        log.error("The SQL views of %s are not there: %s", name, str(error).partition("\n")[0])
