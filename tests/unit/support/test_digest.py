"""The digest that tests compare tables by: it differs when one row does, and only then."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.support.digest import digest

from lockstep import lake
from lockstep.settings import Settings

SCHEMA = pa.schema([("page", pa.string()), ("views", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])
AT = datetime(2026, 11, 10, tzinfo=UTC)
ROWS = [("/", 1, AT), ("/cart", 2, AT), (None, 3, AT)]


@pytest.fixture
def digest_of(tmp_path):
    settings = Settings(home=tmp_path, lake=str(tmp_path / "lake"))

    def write(*commits, **options):
        for n, rows in enumerate(commits):
            table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)
            write_deltalake(lake.path(settings, "gold.v"), table, mode="append" if n else "overwrite")
        return digest(settings, "gold.v", **options)

    return write


def test_neither_the_order_nor_the_files_of_the_rows_count(digest_of):
    assert digest_of(ROWS) == digest_of(ROWS[::-1]) == digest_of(ROWS[:1], ROWS[1:])


@pytest.mark.parametrize(
    "others",
    [
        ROWS[:2],
        [*ROWS, ROWS[0]],
        [("/", 9999, AT), *ROWS[1:]],
        [("/", 1, AT.replace(microsecond=1)), *ROWS[1:]],
        [*ROWS[:2], ("", 3, AT)],
        [*ROWS[:2], ("None", 3, AT)],
        [("/", 2, AT), ("/cart", 1, AT), ROWS[2]],
    ],
)
def test_it_differs_when_one_row_does(digest_of, others):
    assert digest_of(ROWS) != digest_of(others)


def test_rows_and_columns_may_be_left_out(digest_of):
    assert digest_of(ROWS, where=lambda row: row["page"] != "/") == digest_of(ROWS[1:])
    assert digest_of(ROWS, without=["at"]) == digest_of([(p, n, None) for p, n, _ in ROWS], without=["at"])
