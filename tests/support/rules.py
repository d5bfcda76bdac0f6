"""What a rule means, in plain Python: the oracle for Spark and for Great Expectations. It shares no code with either."""

import math
import re
from collections.abc import Mapping
from typing import Any


def holds(kind: str, kwargs: Mapping[str, Any], value: Any) -> bool:
    """Whether a value meets an expectation. Only ``not_be_null`` and ``be_null`` look at null."""
    short = kind.removeprefix("expect_column_value")
    if short == "s_to_not_be_null":
        return value is not None
    if short == "s_to_be_null":
        return value is None
    if value is None:
        return True
    return {
        "s_to_be_between": lambda: not _is_nan(value) and _between(value, kwargs),
        "s_to_be_in_set": lambda: value in kwargs["value_set"],
        "s_to_not_be_in_set": lambda: value not in kwargs["value_set"],
        "s_to_match_regex": lambda: re.search(kwargs["regex"], value) is not None,
        "s_to_not_match_regex": lambda: re.search(kwargs["regex"], value) is None,
        "_lengths_to_be_between": lambda: _between(len(value), kwargs),
        "_lengths_to_equal": lambda: len(value) == kwargs["value"],
    }[short]()


def _between(value: Any, kwargs: Mapping[str, Any]) -> bool:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    above = low is None or (value > low if kwargs.get("strict_min") else value >= low)
    return above and (high is None or (value < high if kwargs.get("strict_max") else value <= high))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
