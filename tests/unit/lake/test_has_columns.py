"""Whether a table has the columns that are declared, as its log says."""

from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep import lake

COLUMNS = {"id": "STRING", "n": "INT", "price": "DECIMAL(10,2)"}


@pytest.fixture(autouse=True)
def table(settings):
    price = pa.array([Decimal("1.25")], pa.decimal128(10, 2))
    rows = pa.table({"id": ["a"], "n": pa.array([1], pa.int32()), "price": price, "tags": [["x"]]})
    write_deltalake(lake.path(settings, "silver.t"), rows)


def test_a_table_follows_the_columns_that_it_has(settings):
    assert lake.has_columns(settings, "silver.t", COLUMNS)
    assert lake.has_columns(settings, "silver.t", COLUMNS | {"tags": "ARRAY<STRING>"})


@pytest.mark.parametrize("change", [{"n": "BIGINT"}, {"price": "DECIMAL(18,2)"}, {"new": "STRING"}], ids=str)
def test_a_table_does_not_follow_a_new_column_or_a_wider_type(settings, change):
    assert not lake.has_columns(settings, "silver.t", COLUMNS | change)


def test_a_type_that_it_can_never_have_is_refused_by_the_next_run_that_writes(settings):
    assert lake.has_columns(settings, "silver.t", COLUMNS | {"n": "STRING"})
