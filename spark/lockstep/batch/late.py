"""``late.<view>``: the rows of silver that came too late for a view, with their offsets. A SQL view, so it is never behind."""

from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables, late_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from lockstep.definition import View


# The lease on what the catalog says.
CATALOG = "catalog"


def define(spark: "SparkSession", view: "View") -> None:
    """Make the view's late rows readable under their name; nothing happens while one of its streams has no silver yet.

    Columns: those of silver, of all the view's event streams, null where a stream has no such column; ``_late_by`` (INTERVAL:
    arrival less event time), and ``_counted``: whether the row still corrected the result.
    """
    times = {_log(stream): time for stream, time in view.times.items() if time}
    if not times or not all(spark.catalog.tableExists(log) for log in times):
        return
    # As the tables are, and not as the contracts want them: a stream's new column comes with its next rows.
    columns = {log: {f.name: f.dataType.simpleString() for f in spark.table(log).schema} for log in times}
    together = {name: kind for has in reversed(columns.values()) for name, kind in has.items()}
    branches = (_branch(view, log, time, columns[log], together) for log, time in times.items())
    spark.sql(f"CREATE OR REPLACE VIEW {late_of(view)} AS {' UNION ALL '.join(branches)}")


def define_all(spark: "SparkSession", views: "Iterable[View]") -> None:
    """The same for many views."""
    for view in views:
        define(spark, view)


def _branch(view: "View", log: str, time: str, has: "Mapping[str, str]", together: "Mapping[str, str]") -> str:
    columns = (name if name in has else f"CAST(NULL AS {kind}) AS {name}" for name, kind in together.items())
    about = (f"_arrival - {time} AS _late_by", f"{view.counts(time)} AS _counted")
    # Names and expressions of contracts and views, which are code of ours.
    return f"SELECT {', '.join((*columns, *about))} FROM {log} WHERE {view.late(time)}"  # noqa: S608


def _log(stream: str) -> str:
    return Tables.of(CONTRACTS[stream]).log
