"""SQL views of the lake."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from lockstep import dictionary, lake
from lockstep.catalog import connect
from lockstep.dictionary import Texts
from lockstep.settings import Settings

VIEW = "serving.numbers"
COLUMNS = {"n": "BIGINT", "text": "STRING"}


@pytest.fixture
def view(spark: Any, settings: Settings) -> Iterator[str]:
    lake.create_view(spark, settings, VIEW, COLUMNS, "SELECT 0 AS n, 'x' AS text")
    yield lake.catalog_name(settings, VIEW)
    lake.drop_view(spark, settings, VIEW)


@pytest.mark.usefixtures("view")
def test_a_new_view_leaves_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert [record.getMessage() for record in caplog.get_records("setup") if record.levelname == "ERROR"] == []


def test_a_view_says_what_the_dictionary_says_also_when_that_has_changed(
    spark: Any, settings: Settings, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("Numbers.", "A reader's numbers.", ""):
        monkeypatch.setattr(dictionary, "texts", lambda _, text=text: Texts(text))
        lake.create_view(spark, settings, VIEW, COLUMNS, "SELECT 1 AS n, 'x' AS text")
        assert (spark.catalog.getTable(view).description or "") == text


def test_a_view_that_has_its_query_already_is_left_alone(spark: Any, settings: Settings, view: str) -> None:
    there = lake.information(spark, view.partition(".")[0])
    spark.sql(f"ALTER VIEW {view} AS SELECT 7 AS n, 'by hand' AS text")
    lake.create_view(spark, settings, VIEW, COLUMNS, "SELECT 0 AS n, 'x' AS text", there)
    assert spark.table(view).first()["n"] == 7, "by what is known it is as it should be, so nothing was asked of Spark"
    lake.create_view(spark, settings, VIEW, COLUMNS, "SELECT 0 AS n, 'x' AS text")
    assert spark.table(view).first()["n"] == 0


def test_a_view_is_there_at_every_moment_while_it_is_replaced(spark: Any, settings: Settings, view: str) -> None:
    replaced = threading.Event()

    def read() -> int:
        """How often it was read."""
        with connect(settings, "reader") as reader:
            for times in count(1):
                assert reader.table(view).columns == [*COLUMNS]
                if replaced.is_set():
                    return times
        raise AssertionError

    with ThreadPoolExecutor() as pool:
        reading = [pool.submit(read) for _ in range(3)]
        for n in range(1, 100):
            lake.create_view(spark, settings, VIEW, COLUMNS, f"SELECT {n} AS n, 'x' AS text")
        replaced.set()
        assert sum(each.result() for each in reading) > 50
    assert spark.table(view).first()["n"] == 99


def test_a_replaced_view_has_its_new_columns_and_a_condition_reaches_its_query(
    spark: Any, settings: Settings, view: str
) -> None:
    lake.create_view(
        spark, settings, VIEW, COLUMNS | {"more": "INT"}, "SELECT id AS n, 'y' AS text, 1 AS more FROM range(9)"
    )
    assert spark.table(view).columns == ["n", "text", "more"]
    plan = spark.sql(f"EXPLAIN SELECT * FROM {view} WHERE n = 3").first()[0]
    assert "Union" not in plan and "Generate" not in plan, "the branch that has the comments costs a reader nothing"
