"""Readers of the marts see what has passed its tests, all of a run together, also if a model breaks or the task is killed."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.integration.marts.builder import killed_at
from tests.support.marts import MODEL, VOLUME, Orders, order
from tests.support.slow import slow

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.maintain import run as maintain_run
from lockstep.marts import artefacts, by_hand, published
from lockstep.marts import run as marts
from lockstep.marts.dbt_project import MartsFailed
from lockstep.results import Results
from lockstep.serving import as_of

TWICE = """
{{{{ config(event_time='day', partition_by='day') }}}}
select day, orders * 2 as orders from {{{{ ref('{mart}') }}}}
{{% if is_incremental() %}} where {{{{ interval_of_run('day') }}}} {{% endif %}}
"""
TWICE_AS_A_VIEW = "{{{{ config(materialized='view') }}}} select day, orders * 2 as orders from {{{{ ref('{mart}') }}}}"
ONE, TWO = {"2026-11-01": 1}, {"2026-11-01": 2}


def built(orders: Orders) -> dict[str, int]:
    """What dbt has built, published or not."""
    return orders.mart(schema=lake.BUILT)


def vacuumed(orders: Orders) -> list[str]:
    """What the housekeeping would tell Spark about the mart's old files."""
    said = SimpleNamespace(statements=[])
    said.sql = said.statements.append
    maintain_run._vacuum_mart(cast(Any, said), orders.settings, f"marts.{orders.name}")
    return cast(list[str], said.statements)


def test_rows_that_fail_their_tests_reach_no_reader_until_they_are_repaired(orders: Orders) -> None:
    orders.write(second=TWICE_AS_A_VIEW)
    orders.change(None, order(1, 1))
    orders.bring_up()
    assert (orders.mart(), orders.mart(orders.second)) == (ONE, {"2026-11-01": 2})
    orders.change(None, order(2, 1, kind="broken"))
    with pytest.raises(MartsFailed, match="holds_daily"):
        orders.bring_up()
    assert (orders.mart(), orders.mart(orders.second)) == (ONE, {"2026-11-01": 2})
    assert built(orders) == ONE, "taken back, so that nobody builds on it"

    orders.change(order(2, 1, kind="broken"), order(2, 1))
    assert orders.bring_up() == ["2026-11-01"]
    assert (orders.mart(), orders.mart(orders.second)) == (TWO, {"2026-11-01": 4})


@pytest.mark.slow
def test_a_model_that_is_broken_leaves_all_marts_as_they_were_and_a_corrected_one_goes_on(orders: Orders) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1))
    orders.bring_up()
    orders.write(second="select no_such_column from {{{{ ref('{mart}') }}}}")
    orders.change(None, order(2, 1))
    with pytest.raises(MartsFailed, match=f"{orders.second}: .*no_such_column"):
        orders.bring_up()
    assert (orders.mart(), orders.mart(orders.second)) == (ONE, {"2026-11-01": 2}), "the other one was built, too"
    assert marts.missing(orders.settings, [f"silver.{orders.contract.name}"]) == ["2026-11-01"]

    orders.write(second=TWICE)
    assert orders.bring_up() == ["2026-11-01"]
    assert (orders.mart(), orders.mart(orders.second)) == (TWO, {"2026-11-01": 4})


@pytest.mark.slow
def test_a_fall_by_half_holds_the_marts_back_or_warns_as_its_severity_says(orders: Orders) -> None:
    orders.write(tests=VOLUME % "error")
    # The newest day is not over, and nobody knows how many it will have.
    for number, day in enumerate((1, 1, 1, 1, 8, 8, 9)):
        orders.change(None, order(number, day))
    orders.bring_up()
    good = {"2026-11-01": 4, "2026-11-08": 2, "2026-11-09": 1}
    assert orders.mart() == good
    orders.change(order(5, 8), None)
    with pytest.raises(MartsFailed, match=f"volume_daily_{orders.contract.name}.*: Got 1 result"):
        orders.bring_up()
    orders.change(order(4, 8), None)
    with pytest.raises(MartsFailed, match="volume_daily"):
        orders.bring_up()
    assert orders.mart() == good, "a day without any rows is a fall, too"
    orders.write(tests=VOLUME % "warn")
    results = Results()
    marts.bring_up(orders.spark, orders.settings, "run", results)
    assert orders.mart() == {"2026-11-01": 4, "2026-11-09": 1}
    (line,) = results.as_rows()
    assert "warning: volume_daily" in line["detail"]
    warned = orders.spark.sql("SELECT warned FROM ops.marts ORDER BY built_at DESC LIMIT 1").collect()[0][0]
    assert [sentence.partition(f"_{orders.contract.name}")[0] for sentence in warned] == ["volume_daily"]


def test_a_new_mart_is_tested_for_all_days_before_anybody_sees_it(orders: Orders) -> None:
    orders.change(None, order(1, 1, kind="broken"))
    orders.change(None, order(2, 5))
    with pytest.raises(MartsFailed, match="holds_daily"):
        orders.bring_up()
    assert not orders.spark.catalog.tableExists(f"marts.{orders.name}")
    assert not lake.exists(orders.settings, f"marts.{orders.name}")
    orders.change(order(1, 1, kind="broken"), order(1, 1))
    orders.bring_up()
    assert orders.mart() == {"2026-11-01": 1, "2026-11-05": 1}


def test_a_mart_that_is_added_has_all_days_with_the_next_run(orders: Orders) -> None:
    orders.change(None, order(1, 1))
    orders.change(None, order(2, 5))
    orders.bring_up()
    orders.write(second=TWICE)
    orders.change(None, order(3, 5))
    assert orders.bring_up() == ["2026-11-05"]
    assert orders.mart(orders.second) == {"2026-11-01": 2, "2026-11-05": 4}


@pytest.mark.parametrize(
    ("point", "built_then"),
    [
        # P10: the first model is built, the second is not.
        slow("mart-built:1", TWO),
        # P11: all is built and has passed its tests.
        ("marts-tested:1", TWO),
    ],
)
def test_a_kill_before_the_marts_are_published_leaves_the_last_good_ones(
    orders: Orders, point: str, built_then: dict[str, int]
) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1))
    orders.bring_up()
    orders.change(None, order(2, 1))
    orders.refine()
    killed_at(point, orders)
    assert built(orders) == built_then, "the task has come so far"
    assert (orders.mart(), orders.mart(orders.second)) == (ONE, {"2026-11-01": 2})
    assert vacuumed(orders) == [], "the newest version may not have the files that readers need"
    assert orders.bring_up() == ["2026-11-01"]
    assert (orders.mart(), orders.mart(orders.second)) == (TWO, {"2026-11-01": 4})
    assert len(vacuumed(orders)) == 1


@pytest.mark.slow
def test_a_kill_of_the_first_build_leaves_nothing_that_is_taken_for_a_mart(orders: Orders) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1))
    orders.refine()
    killed_at("mart-built:1", orders)
    assert lake.exists(orders.settings, f"marts.{orders.name}")
    assert not orders.spark.catalog.tableExists(f"marts.{orders.name}")
    assert orders.bring_up() == ["2026-11-01"]
    assert (orders.mart(), orders.mart(orders.second)) == (ONE, {"2026-11-01": 2})


def test_what_a_task_has_published_before_it_was_killed_is_shown_by_the_next_one(orders: Orders) -> None:
    orders.change(None, order(1, 1))
    orders.bring_up()
    orders.change(None, order(2, 1))
    orders.refine()
    killed_at("marts-published:1", orders)
    assert published.unpublished(orders.settings) == []
    assert orders.mart() == ONE
    published.begin(orders.spark, orders.settings, "next")
    assert orders.mart() == TWO


def test_readers_follow_a_mart_that_was_compacted(orders: Orders) -> None:
    orders.change(None, order(1, 1))
    orders.bring_up()
    table = f"{lake.BUILT}.{orders.name}"
    orders.spark.sql(f"INSERT INTO {table} SELECT * FROM {table}")
    published.publish(orders.spark, orders.settings, "run", [], are_all=False)
    orders.spark.sql(f"OPTIMIZE {table}")
    assert published.unpublished(orders.settings) == []
    orders.bring_up()
    shown = orders.spark.sql(f"SHOW CREATE TABLE marts.{orders.name}").collect()[0][0]
    newest = next(lake.commits(orders.settings, f"marts.{orders.name}"))
    assert newest.operation == "OPTIMIZE"
    assert f"VERSION AS OF {newest.version}" in shown, "its files are kept"


def test_a_mart_can_be_asked_as_it_was_and_is_shown_again_by_the_first_client_of_a_new_server(orders: Orders) -> None:
    orders.change(None, order(1, 1))
    orders.bring_up()
    version = lake.newest_version(orders.settings, f"marts.{orders.name}")
    orders.change(None, order(2, 1))
    orders.bring_up()
    query = as_of.query(orders.settings, f"marts.{orders.name}", as_of.Moment(version))
    assert [row["orders"] for row in orders.spark.sql(query).collect()] == [1]
    # A new server knows no names, and the tables are registered first.
    orders.spark.sql(f"DROP VIEW marts.{orders.name}")
    published.show(orders.spark, orders.settings)
    assert orders.mart() == TWO


@pytest.mark.slow
def test_production_by_hand_is_published_if_the_command_succeeds_and_else_taken_back(orders: Orders) -> None:
    def dbt(*arguments: str) -> int:
        return by_hand.run(orders.spark, orders.settings, [*arguments, "--target", "prod"])

    orders.change(None, order(1, 1))
    orders.bring_up()
    orders.change(None, order(2, 1))
    orders.refine()
    assert dbt("build") == 0
    assert orders.mart() == TWO
    orders.write(MODEL.replace("count(*)", "count(*) * 100").replace("min(kind)", "'broken'"))
    assert dbt("build") == 1
    assert (orders.mart(), built(orders)) == (TWO, TWO)
    with pytest.raises(LockstepError, match="run it again as a whole"):
        dbt("retry")
    manifest = (artefacts.directory(orders.settings) / artefacts.MANIFEST).read_text()
    assert f"marts.{orders.name}" in manifest
    assert lake.BUILT not in manifest, "a developer's models read what is published"
