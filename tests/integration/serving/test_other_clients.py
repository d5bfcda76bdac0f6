"""Clients that know nothing of Lockstep: JDBC and Spark's shell, DuckDB and delta-rs on the files, kcat on the broker."""

import json
import os
import shutil
import subprocess

import duckdb
import pytest
from deltalake import DeltaTable
from tests.support import jdbc

from lockstep import lake
from lockstep.batch.rollup import roll_up
from lockstep.definition.tables import gold_of
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.stack import tools


@pytest.fixture
def gold(spark, settings, stream, view, shop):
    """A table of gold with two minutes: of two views, and of one."""
    for event_id, second in (("e1", 0), ("e2", 1), ("e3", 61)):
        shop.view(event_id, second)
    shop.heartbeat(600)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    roll_up(spark, settings, view, "run")
    return gold_of(view)


def test_a_jdbc_client_reads_a_table_through_the_spark_server(settings, gold):
    statement = f"SELECT page, sum(views) AS views FROM {gold} GROUP BY page"
    assert jdbc.run(f"jdbc:{settings.spark_remote}", statement) == [[{"page": "/", "views": "3"}]]


@pytest.mark.slow
def test_sparks_own_shell_runs_a_statement_and_fails_with_one_that_spark_refuses(settings, gold):
    def shell(statement: str) -> subprocess.CompletedProcess[str]:
        tool = tools.spark_sql(settings, ["--silent=true", "--outputformat=csv2", "-e", statement])
        return subprocess.run(
            tool.argv, env=os.environ | tool.env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )

    done = shell(f"SELECT page, sum(views) AS views FROM {gold} GROUP BY page;")
    assert (done.returncode, done.stdout.split()) == (0, ["page,views", "/,3"]), done.stderr[-3000:]
    refused = shell("SELECT no_such_column;")
    assert refused.returncode != 0
    assert "no_such_column" in refused.stderr


def test_duckdb_reads_the_files_of_a_table(settings, gold):
    rows = DeltaTable(lake.path(settings, gold)).to_pyarrow_dataset()
    assert rows.count_rows() == 2
    assert duckdb.sql("SELECT page, sum(views) FROM rows GROUP BY page").fetchall() == [("/", 3)]


@pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed; Debian has it as a package")
def test_kcat_lists_produces_and_consumes(spark, settings, stream, rows):
    def kcat(*arguments, given=""):
        done = subprocess.run(
            ["kcat", "-b", settings.kafka, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout

    assert f'topic "{stream.topic}" with 3 partitions' in kcat("-L", "-t", stream.topic)
    event = {"event_id": "e1", "event_time": "2026-11-10T10:00:00Z", "user_id": "u1", "session_id": "s1", "page": "/"}
    kcat("-P", "-t", stream.topic, "-K", "|", given=f"u1|{json.dumps(event)}\n")
    assert json.loads(kcat("-C", "-t", stream.topic, "-o", "beginning", "-e", "-q")) == event
    ingest(spark, settings, stream, "run")
    assert [json.loads(row["value"])["event_id"] for row in rows(f"bronze.{stream.name}")] == ["e1"]
