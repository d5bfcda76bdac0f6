"""What delta-rs commits, Spark opens as cheaply as what it has committed itself."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.lake import Txn
from lockstep.lake.small_commits import SmallCommits
from lockstep.settings import LOOPBACK, Settings

TABLE, VIEW = "staging.opened", "staging.opened_view"
COLUMNS = {"page": "STRING", "views": "BIGINT"}


@pytest.fixture
def table(spark: Any, settings: Settings) -> Iterator[SmallCommits]:
    """A table that Spark has created, whose log gets a checkpoint with each of Spark's commits."""
    lake.create(spark, settings, TABLE, COLUMNS, properties={"delta.checkpointInterval": "1"})
    yield SmallCommits(settings, TABLE)
    lake.drop_view(spark, settings, VIEW)
    lake.drop(spark, settings, TABLE)


def write_in_every_way(table: SmallCommits, start: int) -> None:
    rows = pa.table({"page": ["/", "/cart"], "views": [start, start]}, table.schema)
    table.append(rows, Txn("a", start), {})
    table.merge(rows, ["page"], None, Txn("a", start + 1), {})
    table.append(rows, Txn("a", start + 2), {})
    table.compact()
    table.replace(rows, "true", Txn("a", start + 3), {})
    table.vacuum(0)


def jobs_of(spark: Any, settings: Settings) -> int:
    """How many jobs of this session Spark has run. The UI hears of them in order, so it is asked until it knows the last."""
    last = f"last-{uuid4()}"
    spark.addTag(last)
    spark.range(1).count()
    spark.removeTag(last)
    api = f"http://{LOOPBACK}:{settings.spark_ui_port}/api/v1/applications"
    application = httpx.get(api, timeout=30).json()[0]["id"]

    def tags() -> list[str]:
        jobs = httpx.get(f"{api}/{application}/jobs", timeout=30).json()
        return [tag for job in jobs if (tag := " ".join(job["jobTags"])) and spark.session_id in tag]

    known = Retrying(
        stop=stop_after_delay(60), wait=wait_fixed(0.2), retry=retry_if_result(lambda t: last not in " ".join(t))
    )
    return sum("_last-" not in tag for tag in known(tags))


def test_spark_runs_no_job_to_replace_a_view_over_a_version_that_is_new_to_it(
    spark: Any, settings: Settings, table: SmallCommits
) -> None:
    query = f"SELECT * FROM {lake.catalog_name(settings, TABLE)}"
    lake.create_view(spark, settings, VIEW, {}, query)
    for start in (0, 10):
        write_in_every_way(table, start)
        before = jobs_of(spark, settings)
        lake.create_view(spark, settings, VIEW, {}, query)
        assert jobs_of(spark, settings) == before
    # The number sees a session's jobs.
    assert spark.table(lake.catalog_name(settings, VIEW)).count() == 2
    assert jobs_of(spark, settings) > before


def test_spark_finds_the_checksums_right_where_it_compares_them_with_the_files(
    spark: Any, settings: Settings, table: SmallCommits
) -> None:
    write_in_every_way(table, 0)
    name = lake.catalog_name(settings, TABLE)
    spark.sql(f"INSERT INTO {name} VALUES ('/search', 7)")
    # Spark writes no checkpoint where a checksum is wrong.
    newest = Path(lake.path(settings, TABLE)) / "_delta_log" / "_last_checkpoint"
    assert json.loads(newest.read_text())["version"] == lake.newest_version(settings, TABLE)
    assert spark.table(name).count() == 3
