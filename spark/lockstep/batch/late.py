"""``late.<view>``: the rows of silver that came too late for a view, with their offsets. A SQL view, so it is never behind."""

from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.refine.parse import PROVENANCE
from lockstep.refine.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from lockstep.definition import View


def late_of(view: "View") -> str:
    """The name of the view's late rows."""
    return f"late.{view.name}"


def define(spark: "SparkSession", view: "View") -> None:
    """Make the view's late rows readable under their name; nothing happens while one of its streams has no silver yet.

    Columns: the payload's of all the view's event streams, null where a stream has no such column; provenance; ``_late_by``
    (INTERVAL: arrival less event time), and ``_counted``: whether the row still corrected the result.
    """
    branches = [_branch(view, stream, time) for stream, time in view.times.items() if time]
    if branches and all(spark.catalog.tableExists(_log(stream)) for stream, time in view.times.items() if time):
        spark.sql(f"CREATE OR REPLACE VIEW {late_of(view)} AS {' UNION ALL '.join(branches)}")


def define_all(spark: "SparkSession", views: "Iterable[View]") -> None:
    """The same for many views."""
    for view in views:
        define(spark, view)


def _branch(view: "View", stream: str, time: str) -> str:
    has = CONTRACTS[stream].types
    payload = (name if name in has else f"CAST(NULL AS {kind}) AS {name}" for name, kind in _columns(view).items())
    about = (f"_arrival - {time} AS _late_by", f"{view.counts(time)} AS _counted")
    # Names and expressions of contracts and views, which are code of ours.
    return f"SELECT {', '.join((*payload, *PROVENANCE, *about))} FROM {_log(stream)} WHERE {view.late(time)}"  # noqa: S608


def _columns(view: "View") -> dict[str, str]:
    """The columns of all event streams together, in the order in which they first come."""
    found: dict[str, str] = {}
    for stream, time in view.times.items():
        if time:
            found = found | {n: kind for n, kind in CONTRACTS[stream].types.items() if n not in found}
    return found


def _log(stream: str) -> str:
    return Tables.of(CONTRACTS[stream]).log
