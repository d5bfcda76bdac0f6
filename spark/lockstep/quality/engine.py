"""Great Expectations as this package uses it: without telemetry, in the caller's Spark session, with results on disk.

Importing this module imports great_expectations, which takes seconds: import it inside the function that needs it.
"""

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationSuite, ExpectationSuiteValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import DataContextConfig
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)
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

    from lockstep.settings import Settings

_OF_ROWS = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
# The place of an expectation in its suite, in the expectation's ``meta``.
_NUMBER = "number"
# All results of a table have the same fixed run id, so that the newest result overwrites the one before.
_RUN = RunIdentifier(run_name="latest", run_time=datetime(1970, 1, 1, tzinfo=UTC))


@cache
def _spark(settings: "Settings") -> "SparkDatasource":
    # A slice is small and is read three times. If it were persisted, it would stay in the server's memory after the task.
    return context(settings).data_sources.add_spark("lockstep", persist=False)


@cache
def _pandas(settings: "Settings") -> "PandasDatasource":
    return context(settings).data_sources.add_pandas("small")


def batch_of(settings: "Settings", table: str, rows: "DataFrame | pd.DataFrame") -> "Batch":
    """Wrap rows of Spark or pandas so that Great Expectations can validate them."""
    source = _pandas(settings) if isinstance(rows, pd.DataFrame) else _spark(settings)
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
def context(settings: "Settings") -> "EphemeralDataContext":
    """A context that stores its files in ``<home>/quality``, and the pages in ``<home>/data_docs``."""

    def directory(class_name: str, name: str) -> dict[str, Any]:
        return {
            "class_name": class_name,
            "store_backend": {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(settings.home / "quality" / name),
            },
        }

    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(settings.home / "data_docs"),
        },
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    config = DataContextConfig(
        expectations_store_name="suites",
        validation_results_store_name="results",
        checkpoint_store_name="checkpoints",
        stores={
            "suites": directory("ExpectationsStore", "suites"),
            "results": directory("ValidationResultsStore", "results"),
            "checkpoints": {"class_name": "CheckpointStore", "store_backend": {"class_name": "InMemoryStoreBackend"}},
        },
        data_docs_sites={"lockstep": site},
        analytics_enabled=False,
    )
    created = gx.get_context(mode="ephemeral", project_config=config)
    created.variables.progress_bars = {"globally": False}  # type: ignore[assignment]
    return created


def store(settings: "Settings", table: str, result: ExpectationSuiteValidationResult) -> None:
    """Store the table's newest result for the data docs."""
    key = ValidationResultIdentifier(
        expectation_suite_identifier=ExpectationSuiteIdentifier(name=table), run_id=_RUN, batch_identifier="slice"
    )
    context(settings).validation_results_store.set(key, result)
