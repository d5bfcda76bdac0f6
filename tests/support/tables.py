"""The rows of a table for a test, as PySpark gives them."""

from typing import Any

from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.pandas.types import from_arrow_schema

from lockstep import lake
from lockstep.lake.small_commits import collect
from lockstep.settings import Settings


def rows_of(spark: Any, settings: Settings, table: str) -> list[Any]:
    """All rows of a table, or of a view, in any order.

    A table of the lake is read without Spark, which takes a hundred times as long for the few rows of a test.
    """
    if not lake.exists(settings, table):
        return list(spark.table(table).collect())
    found = collect(settings, table, "true")
    return list(ArrowTableToRowsConversion.convert(found, from_arrow_schema(found.schema)))
