"""dbt's own words do what dbt's documentation says, on Delta: strategies, full refresh, contracts, changed columns, targets."""

import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.paths import CHECKOUT
from tests.support.slow import slow

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.lake import Txn
from lockstep.marts import artefacts, by_hand, docs, freshness
from lockstep.settings import Settings

COLUMNS = {"id": "INT", "at": "TIMESTAMP", "amount": "INT"}
SOURCES = """
sources:
  - name: silver
    tables:
      - name: {table}
        config: {{event_time: at}}
"""
# What most models of these tests select: the sum of each day.
SUMS = """
select cast(at as date) as day, sum(amount) as amount
from {{{{ source('silver', '{table}') }}}}
{{% if is_incremental() %}} where {{{{ interval_of_run('at') }}}} {{% endif %}}
group by 1
"""
REPLACED = "{{ config(event_time='day', partition_by='day') }}"
_versions = count(1)


@dataclass
class Project:
    """A dbt project with one source, whose rows a test chooses, and the models that it writes."""

    spark: Any
    settings: Settings
    table: str
    read_output: Callable[[], str]
    output: str = ""

    @property
    def models(self) -> Path:
        return self.settings.project / "dbt" / "models" / "marts"

    def model(self, sql: str, config: str = REPLACED, columns: str = "") -> None:
        """Write the model ``<table>_mart``, and what its contract says of its columns, if there is one."""
        (self.models / f"{self.table}_mart.sql").write_text(config + sql.format(table=self.table))
        text = SOURCES.format(table=self.table)
        if columns:
            text += f"models:\n  - name: {self.table}_mart\n    config: {{contract: {{enforced: true}}}}\n    columns:\n{columns}"
        (self.models / "models.yml").write_text(text)

    def hold(self, *rows: tuple[int, datetime, int]) -> None:
        """Make the source hold these rows and no others."""
        lake.create(self.spark, self.settings, f"silver.{self.table}", COLUMNS)
        values = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        held = pa.Table.from_pylist(values, lake.schema(self.settings, f"silver.{self.table}"))
        lake.replace(held, self.settings, f"silver.{self.table}", "true", Txn("test", next(_versions)), {"writer": "t"})

    def dbt(self, *arguments: str) -> int:
        """Run dbt; its exit code."""
        code = by_hand.run(self.spark, self.settings, arguments)
        self.output = " ".join(self.read_output().split())
        return code

    def run(self, first: int = 0, after: int = 0, *more: str) -> int:
        """Run the model for the days of November from ``first`` on and before ``after``, or for all."""
        interval = ["--event-time-start", f"2026-11-{first:02}", "--event-time-end", f"2026-11-{after:02}"]
        return self.dbt("run", *(interval if first else []), *more)

    def mart(self, schema: str = "") -> dict[int, int]:
        """The amount of each day of November."""
        found = self.spark.table(f"{schema or self.settings.dbt_schema}.{self.table}_mart").collect()
        assert len({row["day"] for row in found}) == len(found), "a day is there once"
        return {row["day"].day: row["amount"] for row in found}

    def commits(self) -> list[str]:
        """What the commits of the model's table were, the newest first."""
        history = self.spark.sql(f"DESCRIBE HISTORY {self.settings.dbt_schema}.{self.table}_mart")
        return [row["operation"] for row in history.collect()]


def at(day: int, hour: int = 12) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


@pytest.fixture
def project(spark: Any, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Project]:
    name = f"sold_{uuid.uuid4().hex[:8]}"
    own = {"project": tmp_path, "home": tmp_path / "home", "dbt_schema": f"dbt_{name}", "dbt_sample_days": 0}
    found = Project(spark, settings.model_copy(update=own), name, lambda: capsys.readouterr().out)
    found.models.mkdir(parents=True)
    shutil.copy(CHECKOUT / "dbt" / "dbt_project.yml", tmp_path / "dbt")
    found.hold((1, at(1), 10), (2, at(2), 20), (3, at(3), 30))
    found.model(SUMS)
    yield found
    spark.sql(f"DROP SCHEMA IF EXISTS dbt_{name} CASCADE")
    for table in (f"silver.{name}", f"marts.{name}_mart"):
        lake.drop(spark, settings, table)


def test_the_days_of_a_run_are_replaced_and_a_day_that_became_empty_is_emptied(project: Project) -> None:
    assert project.run(2, 3) == 0
    assert project.mart() == {1: 10, 2: 20, 3: 30}, "a model that does not exist yet is built for all days"
    project.hold((1, at(1), 11), (3, at(3, 0), 31), (4, at(3, 23), 1))
    assert project.run(2, 4) == 0
    assert project.mart() == {1: 10, 3: 32}
    assert project.commits()[0] == "WRITE"
    assert project.run() == 0
    assert project.mart() == {1: 11, 3: 32}, "without an interval, all days are built"


def test_rows_outside_of_the_days_of_the_run_are_refused(project: Project) -> None:
    project.run()
    project.model(SUMS.replace("interval_of_run('at')", "'true'"))
    assert project.run(2, 3) == 1
    assert "DELTA_REPLACE_WHERE_MISMATCH" in project.output
    assert project.mart() == {1: 10, 2: 20, 3: 30}


def test_a_part_of_a_day_is_refused(project: Project) -> None:
    project.run()
    assert project.dbt("run", "--event-time-start", "2026-11-02T05:00:00", "--event-time-end", "2026-11-03") == 1
    assert "Days are built as a whole" in project.output


def test_a_full_refresh_is_one_commit_and_one_that_fails_leaves_the_last_good_version(project: Project) -> None:
    project.run()
    project.hold((1, at(9), 90))
    assert project.run(0, 0, "--full-refresh") == 0
    assert project.mart() == {9: 90}
    assert project.commits() == ["CREATE OR REPLACE TABLE AS SELECT"] * 2
    assert project.run(0, 0, "--full-refresh") == 0
    assert project.commits() == ["CREATE OR REPLACE TABLE AS SELECT"] * 3, "as often as one likes"
    project.model("select cast(raise_error('no') as date) as day, amount from {{{{ source('silver', '{table}') }}}}")
    assert project.run(0, 0, "--full-refresh") == 1
    assert project.mart() == {9: 90}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        slow("incremental_strategy='append'", [10, 10, 11]),
        ("incremental_strategy='merge', unique_key='id'", [10, 11]),
        slow("incremental_strategy='insert_overwrite', partition_by='day'", [10, 11]),
        ("materialized='table'", [10, 11]),
    ],
)
def test_dbts_other_strategies_and_tables_do_what_they_do_elsewhere(
    project: Project, config: str, expected: list[int]
) -> None:
    sql = "select id, cast(at as date) as day, amount from {{{{ source('silver', '{table}') }}}}"
    project.hold((1, at(1), 10))
    project.model(sql, f"{{{{ config({config}) }}}}")
    assert project.run() == 0
    project.hold((1, at(1), 10), (2, at(2), 11))
    assert project.run() == 0
    found = project.spark.table(f"{project.settings.dbt_schema}.{project.table}_mart").collect()
    assert sorted(row["amount"] for row in found) == expected


def test_a_batch_of_microbatch_is_replaced_whole_also_if_it_became_empty(project: Project) -> None:
    project.model(
        SUMS,
        "{{ config(incremental_strategy='microbatch', event_time='day', batch_size='day', begin='2026-11-01', "
        "partition_by='day') }}",
    )
    assert project.run(1, 4) == 0
    assert project.mart() == {1: 10, 2: 20, 3: 30}
    project.hold((1, at(1), 11), (3, at(3), 31))
    assert project.run(2, 4) == 0
    assert project.mart() == {1: 10, 3: 31}


def test_a_new_column_is_added_or_refused_as_the_model_says(project: Project) -> None:
    more = SUMS.replace("sum(amount) as amount", "sum(amount) as amount, count(*) as sales")
    project.run()
    project.model(more)
    assert project.run() == 1
    assert "source and target schemas on this incremental model are out of sync" in project.output
    assert "full_refresh" in project.output, "the way out"
    project.model(more, "{{ config(event_time='day', partition_by='day', on_schema_change='append_new_columns') }}")
    assert project.run(3, 4) == 0
    found = project.spark.table(f"{project.settings.dbt_schema}.{project.table}_mart").collect()
    assert sorted((row["day"].day, row["sales"]) for row in found if row["sales"]) == [(3, 1)]


def test_a_column_is_not_dropped_and_a_full_refresh_is_the_way(project: Project) -> None:
    project.model(SUMS.replace("sum(amount)", "1 as extra, sum(amount)"))
    project.run()
    project.model(SUMS, "{{ config(event_time='day', partition_by='day', on_schema_change='sync_all_columns') }}")
    assert project.run() == 1
    assert "Delta Lake does not support dropping columns" in project.output
    assert project.run(0, 0, "--full-refresh") == 0


CONTRACT = """
      - {name: day, data_type: date, constraints: [{type: not_null}]}
      - {name: amount, data_type: bigint, constraints: [{type: not_null}]}
"""


def test_a_contract_is_held_when_the_table_is_made_and_in_each_run_after(project: Project) -> None:
    project.model(SUMS, columns=CONTRACT.replace("bigint", "int"))
    assert project.run() == 1
    assert "This model has an enforced contract that failed" in project.output
    project.model(SUMS, columns=CONTRACT)
    assert project.run() == 0
    project.model(SUMS, columns=CONTRACT.replace("bigint", "int"))
    assert project.run(2, 3) == 1
    assert "This model has an enforced contract that failed" in project.output


def test_a_null_that_a_contract_excludes_reaches_no_reader(project: Project) -> None:
    project.model(SUMS, columns=CONTRACT)
    assert project.run() == 0
    project.model(SUMS.replace("sum(amount)", "nullif(sum(amount), 20)"), columns=CONTRACT)
    assert project.run(2, 3) == 1
    assert "contract_not_null" in project.output
    assert project.run(0, 0, "--full-refresh") == 1
    assert "amount is null, and the contract says not_null" in project.output
    assert project.mart() == {1: 10, 2: 20, 3: 30}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("incremental_strategy='delete+insert', unique_key='day'", "'delete+insert' is not valid for this adapter"),
        ("incremental_strategy='upsert'", 'macro with the name "get_incremental_upsert_sql"'),
        ("file_format='parquet', event_time='day'", "Set file_format='delta'"),
        ("location_root='/tmp'", "remove location_root"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_way_out(project: Project, config: str, reason: str) -> None:
    project.model(SUMS, f"{{{{ config({config}) }}}}")
    assert project.run() == 1
    assert reason in project.output


def test_replace_where_needs_to_know_which_rows(project: Project) -> None:
    project.model(SUMS, "")
    assert project.run() == 0
    assert project.run() == 1
    assert "replace_where needs event_time" in project.output
    project.model(SUMS, '{{ config(incremental_predicates="amount < 100") }}')
    assert project.run() == 0


def test_only_prod_writes_what_everybody_reads_and_others_read_it(project: Project) -> None:
    assert project.dbt("run", "--target", "prod") == 0
    assert project.mart("marts") == {1: 10, 2: 20, 3: 30}
    assert (artefacts.directory(project.settings) / artefacts.MANIFEST).exists()

    (project.models / f"{project.table}_next.sql").write_text(
        f"{REPLACED} select day, amount * 2 as amount from {{{{ ref('{project.table}_mart') }}}}"
    )
    assert project.dbt("run", "--select", f"{project.table}_next") == 0, "its input is read from production"
    own = project.spark.table(f"{project.settings.dbt_schema}.{project.table}_next").collect()
    assert sorted(row["amount"] for row in own) == [20, 40, 60]
    assert not project.spark.catalog.tableExists(f"{project.settings.dbt_schema}.{project.table}_mart")
    assert not project.spark.catalog.tableExists(f"marts.{project.table}_next")
    assert project.dbt("ls", "--select", "state:modified", "--resource-type", "model") == 0
    assert f"{project.table}_next" in project.output
    assert f"{project.table}_mart" not in project.output


def test_a_developers_models_read_a_few_days(project: Project) -> None:
    today = datetime.now(UTC)
    project.hold((1, today, 1), (2, today - timedelta(days=30), 2))
    own = project.settings.model_copy(update={"dbt_sample_days": 3})
    assert by_hand.run(project.spark, own, ["run"]) == 0
    assert [row["day"] for row in project.spark.table(f"{own.dbt_schema}.{project.table}_mart").collect()] == [
        date(today.year, today.month, today.day)
    ]


def test_production_is_not_replaced_by_a_sample(project: Project) -> None:
    with pytest.raises(LockstepError, match="Target prod would get a sample"):
        project.dbt("run", "--target", "prod", "--sample", "3 days")


@pytest.mark.slow
def test_a_stale_source_is_named(project: Project) -> None:
    (project.models / "models.yml").write_text(
        SOURCES.format(table=project.table).replace(
            "event_time: at", "loaded_at_field: at, freshness: {error_after: {count: 1, period: hour}}"
        )
    )
    project.hold((1, datetime.now(UTC), 1))
    assert project.dbt("source", "freshness", "--target", "prod") == 0
    project.hold((1, datetime.now(UTC) - timedelta(hours=2), 1))
    assert project.dbt("source", "freshness", "--target", "prod") == 1
    assert f"ERROR STALE freshness of silver.{project.table}" in project.output
    assert (artefacts.directory(project.settings) / "sources.json").exists()


def test_production_names_the_sources_that_are_stale_and_leaves_out_those_that_do_not_exist(project: Project) -> None:
    fresh = (
        "loaded_at_field: at, freshness: {warn_after: {count: 1, period: hour}, error_after: {count: 3, period: hour}}"
    )
    written = SOURCES.format(table=project.table).replace("event_time: at", fresh)
    (project.models / "models.yml").write_text(written + f"      - {{name: none_yet, config: {{{fresh}}}}}\n")
    now = datetime.now(UTC)
    project.hold((1, now, 1))
    assert freshness.stale(project.spark, project.settings) == {}
    for hours, limit in ((2, "warn_after is 1 hour"), (4, "error_after is 3 hours")):
        at_then = now - timedelta(hours=hours)
        project.hold((1, at_then, 1))
        said = f"the newest row is of {at_then:%F %T} UTC, and {limit}"
        assert freshness.stale(project.spark, project.settings) == {f"silver.{project.table}": said}


@pytest.mark.slow
def test_the_pages_have_the_models_and_are_built_once_for_a_project(project: Project) -> None:
    # The second run leaves temporary views in the session.
    assert [project.dbt("run", "--target", "prod") for _ in range(2)] == [0, 0]
    pages = docs.build(project.spark, project.settings)
    assert pages is not None
    assert f"{project.table}_mart" in pages.read_text()
    assert 'href="../data_docs/index.html"' in pages.read_text()
    built = pages.stat().st_mtime_ns
    assert docs.build(project.spark, project.settings) == pages
    assert pages.stat().st_mtime_ns == built
    project.model(SUMS + "-- changed")
    docs.build(project.spark, project.settings)
    assert pages.stat().st_mtime_ns > built
    assert (artefacts.directory(project.settings) / "catalog.json").exists()
