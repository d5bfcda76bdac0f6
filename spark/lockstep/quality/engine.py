"""Great Expectations as this package uses it: without telemetry, in the caller's Spark session, and with nothing on disk.

Importing this module imports great_expectations, which takes seconds: import it inside the function that needs it.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationSuite
from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults
from great_expectations.expectations.expectation import (
    ColumnMapExpectation,
    ColumnPairMapExpectation,
    MulticolumnMapExpectation,
)
from great_expectations.expectations.registry import get_expectation_impl

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
    from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
    from pyspark.sql import DataFrame

_OF_ROWS = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
# The place of an expectation in its suite, in the expectation's ``meta``.
_NUMBER = "number"


@cache
def _spark() -> "SparkDatasource":
    # A slice is small and is read three times. If it were persisted, it would stay in the server's memory after the task.
    return _context().data_sources.add_spark("lockstep", persist=False)


@cache
def _pandas() -> "PandasDatasource":
    return _context().data_sources.add_pandas("small")


def batch_of(table: str, rows: "DataFrame | pd.DataFrame") -> "Batch":
    """Wrap rows of Spark or pandas so that Great Expectations can validate them."""
    source = _pandas() if isinstance(rows, pd.DataFrame) else _spark()
    if table in source.get_asset_names():
        source.delete_asset(table)
    definition = source.add_dataframe_asset(table).add_batch_definition_whole_dataframe("slice")
    return definition.get_batch({"dataframe": rows})


def run(batch: "Batch", expectations: list[dict[str, Any]], result_format: Any) -> list[dict[str, Any]]:
    """The result of each expectation, in their order. One that raises counts as failed."""
    # The library gives results in an order of its own.
    numbered = [
        {"type": one["type"], "kwargs": one["kwargs"], "meta": {_NUMBER: number}}
        for number, one in enumerate(expectations)
    ]
    suite = ExpectationSuite(name="expectations", expectations=numbered)
    results = batch.validate(suite, result_format=result_format).results
    by_number = {config.meta[_NUMBER]: r.to_json_dict() for r in results if (config := r.expectation_config)}
    return [by_number[number] for number in range(len(expectations))]


def counts_rows(expectation: dict[str, Any]) -> bool:
    """Whether the expectation is about each row, and met only if no row breaks it: then there is nothing to count."""
    is_of_rows = issubclass(get_expectation_impl(expectation["type"]), _OF_ROWS)
    return is_of_rows and expectation["kwargs"].get("mostly", 1) == 1


@cache
def _context() -> "EphemeralDataContext":
    """A context that keeps nothing on disk: what gates find is in ``ops.quality``."""
    config = DataContextConfig(store_backend_defaults=InMemoryStoreBackendDefaults(), analytics_enabled=False)
    created = gx.get_context(mode="ephemeral", project_config=config)
    created.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    return created
