"""The suites of new tables, as the JSON that Great Expectations reads. Pure."""

from collections.abc import Iterable
from typing import Any

from lockstep.suite_files import suite_text

PROVENANCE = ("_topic", "_partition", "_offset", "_arrival")


def of_stream(name: str, required: Iterable[str], unique: str) -> str:
    """The suite of a stream's silver table."""
    columns = [*required, *PROVENANCE]
    return suite_text(f"silver.{name}", f"Silver suite for {name}.", [*map(_present, columns), _unique((unique,))])


def of_windows(name: str, key: Iterable[str], values: Iterable[str]) -> str:
    """The suite of a windowed view's gold table."""
    key = tuple(key)
    order = {"column_A": "window_end", "column_B": "window_start", "or_equal": False}
    checks = [
        *map(_present, dict.fromkeys(["window_start", "window_end", *key, *values])),
        _unique(key),
        {"type": "expect_column_pair_values_a_to_be_greater_than_b", "kwargs": order},
    ]
    return suite_text(f"gold.{name}", f"Gold suite for {name}.", checks)


def of_machines(name: str, key: Iterable[str], values: Iterable[str]) -> str:
    """The suite of a keyed view's gold table."""
    key = tuple(key)
    checks = [*map(_present, dict.fromkeys(["at", *key, *values])), _unique(key)]
    return suite_text(f"gold.{name}", f"Gold suite for {name}.", checks)


def _present(column: str) -> dict[str, Any]:
    return {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": column}}


def _unique(key: tuple[str, ...]) -> dict[str, Any]:
    if len(key) == 1:
        return {"type": "expect_column_values_to_be_unique", "kwargs": {"column": key[0]}}
    return {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": list(key)}}
