"""The suites of new tables, as the JSON that Great Expectations reads. Pure."""

import json
from collections.abc import Iterable
from typing import Any

PROVENANCE = ("_topic", "_partition", "_offset", "_arrival")


def of_stream(name: str, required: Iterable[str], unique: str) -> str:
    """The suite of a stream's silver table."""
    columns = [*required, *PROVENANCE]
    return _suite(f"silver.{name}", f"Silver suite for {name}.", [*map(_present, columns), _unique((unique,))])


def of_windows(name: str, key: Iterable[str], values: Iterable[str]) -> str:
    """The suite of a windowed view's gold table."""
    key = tuple(key)
    order = {"column_A": "window_end", "column_B": "window_start", "or_equal": False}
    checks = [
        *map(_present, dict.fromkeys(["window_start", "window_end", *key, *values])),
        _unique(key),
        {"type": "expect_column_pair_values_a_to_be_greater_than_b", "kwargs": order},
    ]
    return _suite(f"gold.{name}", f"Gold suite for {name}.", checks)


def of_machines(name: str, key: Iterable[str], values: Iterable[str]) -> str:
    """The suite of a keyed view's gold table."""
    key = tuple(key)
    checks = [*map(_present, dict.fromkeys(["at", *key, *values])), _unique(key)]
    return _suite(f"gold.{name}", f"Gold suite for {name}.", checks)


def _present(column: str) -> dict[str, Any]:
    return {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": column}}


def _unique(key: tuple[str, ...]) -> dict[str, Any]:
    if len(key) == 1:
        return {"type": "expect_column_values_to_be_unique", "kwargs": {"column": key[0]}}
    return {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": list(key)}}


def _suite(table: str, notes: str, checks: list[dict[str, Any]]) -> str:
    # One expectation a line, which neither json.dumps nor Great Expectations can write. The library adds its version itself.
    lines = ",\n".join(f"    {json.dumps(check)}" for check in checks)
    return (
        f'{{\n  "name": {json.dumps(table)},\n  "notes": {json.dumps(notes)},\n  "expectations": [\n{lines}\n  ]\n}}\n'
    )
