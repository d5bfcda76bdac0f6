"""BI tools on the Thrift server: they read what readers may see, as it comes, and can change nothing."""

from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support import jdbc

from lockstep import lake
from lockstep.batch.rollup import roll_up
from lockstep.definition.tables import gold_of, serving_of
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.serving import merged


@pytest.fixture(scope="module")
def url(stack):
    """A Thrift server of the stack that all tests share."""
    try:
        stack.up(["thrift"])
        yield f"jdbc:hive2://127.0.0.1:{stack.settings.thrift_port}"
    finally:
        stack.down(["thrift"])


@pytest.fixture
def publish(spark, settings, stream, view, shop):
    """Publish a minute of the view, with one page view."""

    def publish(event_id: str, minute: int) -> None:
        shop.view(event_id, minute * 60)
        shop.heartbeat(minute * 60 + 600)
        shop.flush()
        ingest(spark, settings, stream, "run")
        refine(spark, settings, stream, "run")
        roll_up(spark, settings, view, "run")
        merged.publish(spark, settings, [view])

    return publish


def awaited(url: str, statement: str, wanted: object) -> None:
    """Wait until the statement's answer is this one."""
    until = Retrying(stop=stop_after_delay(60), wait=wait_fixed(1), retry=retry_if_not_result(lambda same: same))
    until(lambda: jdbc.run(url, statement) == [wanted])


def files(settings, *tables: str) -> set[tuple[str, int]]:
    """The files of the tables, and how large they are."""
    folders = (Path(lake.path(settings, table)) for table in tables)
    return {(str(file), file.stat().st_size) for folder in folders for file in folder.rglob("*") if file.is_file()}


def test_a_bi_tool_finds_the_views_and_sees_what_is_published_while_it_is_connected(url, publish, view):
    publish("e1", 0)
    count = f"SELECT sum(views) AS views FROM {serving_of(view)}"
    awaited(url, count, [{"views": "1"}])
    (tables,) = jdbc.run(url, jdbc.TABLES)
    found = {f"{table['TABLE_SCHEM']}.{table['TABLE_NAME']}": table["TABLE_TYPE"] for table in tables}
    assert found[serving_of(view)] == "VIEW"
    assert found[gold_of(view)] == "TABLE"
    publish("e2", 1)
    awaited(url, count, [{"views": "2"}])


def test_no_statement_changes_the_lake_or_reads_what_is_not_for_readers(url, publish, settings, view, stream):
    publish("e1", 0)
    count = f"SELECT count(*) AS n FROM {gold_of(view)}"
    awaited(url, count, [{"n": "1"}])
    tables = (gold_of(view), f"silver.{stream.name}", "gold.mine")
    before = files(settings, *tables)
    table = f"delta.`{lake.path(settings, gold_of(view))}`"
    bronze = lake.path(settings, f"bronze.{stream.name}")
    refused = [
        f"DELETE FROM {gold_of(view)}",
        f"UPDATE {gold_of(view)} SET views = 7",
        f"INSERT INTO {table} SELECT * FROM {table}",
        f"ALTER TABLE {gold_of(view)} SET TBLPROPERTIES ('a' = 'b')",
        f"CREATE TABLE mine USING delta LOCATION '{settings.lake}/gold/mine' AS SELECT 1 AS one",
        f"INSERT OVERWRITE DIRECTORY '{settings.lake}/gold/{view.name}' USING csv SELECT 1",
        f"SELECT * FROM text.`{settings.secrets_file}`",
        f"SELECT * FROM delta.`{bronze}`",
    ]
    answers = jdbc.run(url, *refused, count)
    assert [answer for answer in answers[:-1] if isinstance(answer, list)] == []
    assert answers[-1] == [{"n": "1"}]
    assert files(settings, *tables) == before


@pytest.mark.slow
def test_a_name_that_a_client_has_changed_means_again_what_it_should(url, publish, view):
    publish("e1", 0)
    count = f"SELECT sum(views) AS views FROM {serving_of(view)}"
    awaited(url, count, [{"views": "1"}])
    changes = [f"ALTER VIEW {serving_of(view)} AS SELECT 7 AS views", f"DROP TABLE {gold_of(view)}"]
    assert jdbc.run(url, *changes, "CREATE VIEW gold.mine AS SELECT 1 AS one") == [[], [], []]
    awaited(url, count, [{"views": "1"}])
    (tables,) = jdbc.run(url, jdbc.TABLES)
    assert "mine" not in {table["TABLE_NAME"] for table in tables}
