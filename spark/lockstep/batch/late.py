"""``late.<view>``: the rows of silver that came too late for a view, with their offsets. A SQL view, so it is always current."""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import LATE
from lockstep.definition.tables import Tables, late_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from lockstep.definition import View
    from lockstep.settings import Settings


def define(spark: "SparkSession", settings: "Settings", view: "View") -> None:
    """Create the SQL view of a view's late rows, unless one of its streams has no silver yet.

    Its columns are those of silver, of all the view's event streams, null where a stream has no such column; ``_late_by``
    (INTERVAL: arrival less event time); and ``_counted``: whether the row was counted all the same.
    """
    times = {lake.catalog_name(settings, _log(stream)): time for stream, time in view.times.items() if time}
    if not times or not all(spark.catalog.tableExists(log) for log in times):
        return
    # The columns of the tables, not of the contracts: a table gets a new column with its next rows.
    columns = {log: {f.name: f.dataType.simpleString() for f in spark.table(log).schema} for log in times}
    union = {name: kind for own in reversed(columns.values()) for name, kind in own.items()}
    branches = (_branch(view, log, time, columns[log], union) for log, time in times.items())
    lake.create_view(spark, settings, late_of(view), {**union, **LATE}, " UNION ALL ".join(branches))


def _branch(view: "View", log: str, time: str, own: "Mapping[str, str]", union: "Mapping[str, str]") -> str:
    columns = (name if name in own else f"CAST(NULL AS {kind}) AS {name}" for name, kind in union.items())
    added = (f"{view.arrival} - {time} AS _late_by", f"{view.counts(time)} AS _counted")
    # Names and expressions are those of contracts and views: code of the project.
    return f"SELECT {', '.join((*columns, *added))} FROM {log} WHERE {view.late(time)}"  # noqa: S608


def _log(stream: str) -> str:
    return Tables.of(CONTRACTS[stream]).log
