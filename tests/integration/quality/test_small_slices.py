"""Great Expectations over pandas lets nothing pass that it stops over Spark."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from tests.support.slow import slow

from lockstep.quality.engine import batch_of, run
from lockstep.quality.gate import has_nan

COLUMNS = "id STRING, word STRING, number INT, share DOUBLE, price DECIMAL(12,3), flag BOOLEAN, since TIMESTAMP, until TIMESTAMP"
START = datetime(2026, 11, 20, tzinfo=UTC)
NAMES = [column.split()[0] for column in COLUMNS.split(", ")]
# One of each kind that the suites of the project use.
EXPECTATIONS = [
    *({"type": "expect_column_values_to_not_be_null", "kwargs": {"column": name}} for name in NAMES),
    *(
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": name, "min_value": 0, "max_value": 9}}
        for name in ("number", "share", "price")
    ),
    {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "word", "value_set": ["red", "blue"]}},
    {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "number", "value_set": [1, 2, 3]}},
    {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "flag", "value_set": [True]}},
    {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}},
    {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "word", "regex": "^[a-z]+$"}},
    {"type": "expect_column_values_to_not_match_regex", "kwargs": {"column": "word", "regex": "@"}},
    {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["word", "number"]}},
    {
        "type": "expect_column_pair_values_a_to_be_greater_than_b",
        "kwargs": {"column_A": "until", "column_B": "since", "or_equal": True},
    },
]


def made(seed):
    """Rows of which chance decides how wrong they are: not at all, or here and there."""
    dice = Random(seed)
    wrong = dice.choice([0, 0, 0.1, 0.5])

    def maybe(good, *bad):
        return dice.choice(bad) if dice.random() < wrong else good

    def row(n):
        since = START + timedelta(minutes=n)
        return (
            maybe(f"id{n}", "id0", None),
            maybe(dice.choice(["red", "blue"]), None, "a@b", "Red"),
            maybe(dice.randrange(1, 4), None, -1, 10),
            maybe(dice.random(), None, -0.1, 9.5),
            maybe(Decimal("1.500"), None, Decimal("-0.001")),
            maybe(True, None, False),
            maybe(since, None),
            maybe(since + timedelta(seconds=dice.randrange(60)), None, since - timedelta(seconds=1)),
        )

    return [row(n) for n in range(dice.choice([0, 1, 12]))]


@pytest.mark.parametrize("seed", [0, 1, *(slow(seed) for seed in range(2, 8))])
def test_both_engines_come_to_the_same_verdict_of_every_check(spark, settings, seed):
    frame = spark.createDataFrame(made(seed), COLUMNS)

    def verdicts(rows):
        results = run(batch_of(f"seed {seed}", rows), EXPECTATIONS, "BOOLEAN_ONLY")
        checks = [(one["type"], str(one["kwargs"])) for one in EXPECTATIONS]
        return dict(zip(checks, (result["success"] for result in results), strict=True))

    of_spark, of_pandas = verdicts(frame), verdicts(frame.toArrow().to_pandas())
    assert len(of_spark) == len(EXPECTATIONS)
    assert {check for check, passed in of_pandas.items() if passed} <= {c for c, passed in of_spark.items() if passed}
    if not made(seed) or all(None not in row for row in made(seed)):
        assert of_pandas == of_spark


def test_a_number_that_is_not_one_is_left_to_spark():
    assert has_nan(pa.table({"share": [1.0, float("nan")]}))
    assert not has_nan(pa.table({"share": [1.0, None], "word": ["NaN", None]}))
