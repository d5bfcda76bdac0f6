"""The marts follow their sources: each day that new, changed or deleted rows touch is built again, and no other."""

from datetime import UTC, datetime

import pytest
from tests.support.marts import Orders, order
from tests.support.records import at

from lockstep.errors import LockstepError
from lockstep.ingest import bronze
from lockstep.marts import complete, record
from lockstep.marts import run as marts
from lockstep.marts.dbt_project import MartsFailed
from lockstep.marts.progress import Box, Kind, Progress
from lockstep.quality import outcomes
from lockstep.quality.checks import Check
from lockstep.refine import silver
from lockstep.results import Results
from lockstep.suite_files import Severity


def test_today_is_built_at_once_and_a_past_day_again_when_its_rows_change(orders):
    for number, day in enumerate((1, 1, 2, 9)):
        orders.change(None, order(number, day))
    assert orders.bring_up() == ["2026-11-01"], "a first build is one run of dbt"
    assert orders.mart() == {"2026-11-01": 2, "2026-11-02": 1, "2026-11-09": 1}
    assert orders.bring_up() == [], "nothing is new"

    orders.change(None, order(5, 2))
    assert orders.bring_up() == ["2026-11-02"]
    orders.change(order(3, 9), order(3, 5))
    assert orders.bring_up() == ["2026-11-09", "2026-11-05"], "where it was, and where it is"
    orders.change(order(0, 1), None)
    assert orders.bring_up() == ["2026-11-01"]
    assert orders.mart() == {"2026-11-01": 1, "2026-11-02": 2, "2026-11-05": 1}


def test_a_day_that_fails_waits_until_it_can_be_built_and_the_others_are_done(orders):
    orders.change(None, order(0, 1))
    orders.bring_up()
    orders.change(None, order(1, 3, kind="broken"))
    orders.change(None, order(2, 7))
    with pytest.raises(MartsFailed, match=r"2026-11-03: dbt build failed:\n +holds_daily"):
        orders.bring_up()
    assert orders.mart() == {"2026-11-01": 1, "2026-11-07": 1}
    assert marts.missing(orders.settings, [f"silver.{orders.contract.name}"]) == ["2026-11-03"]
    assert [*record.failed(orders.settings)] == ["2026-11-03"]
    orders.change(order(1, 3, kind="broken"), order(1, 3))
    assert orders.bring_up() == ["2026-11-03"]
    assert marts.missing(orders.settings, [f"silver.{orders.contract.name}"]) == []
    assert record.failed(orders.settings) == {}


def test_the_marts_wait_while_rows_of_a_source_have_failed_their_gate(orders, caplog):
    orders.change(None, order(1, 3))
    verdict(orders, success=False)
    assert orders.bring_up() == []
    assert f"The marts wait: the newest rows of silver.{orders.contract.name} have not passed" in caplog.text
    box = Box(orders.name, Kind.RUN)
    with pytest.raises(LockstepError, match=r"have not passed their gate\. Clear the task again"):
        marts.build_again(orders.spark, orders.settings, box, "run", Results(), Progress())
    verdict(orders, success=True)
    assert orders.bring_up() == ["2026-11-03"]


def verdict(orders: Orders, success: bool) -> None:
    """What a gate writes."""
    outcome = outcomes.Outcome(
        table=f"silver.{orders.contract.name}",
        suite="suite",
        results=(Check("It holds.", (), Severity.FAIL, success, reason="" if success else "It does not hold."),),
        rows=1,
        slice="true",
        version=1,
        checked_at=datetime.now(UTC),
    )
    with outcomes.TABLE.writing(orders.spark, orders.settings, "gate") as commit:
        outcomes.write(commit, [outcome], outcomes.latest(orders.settings), "gate")


def test_a_day_is_complete_when_the_log_has_passed_its_end_or_silver_has_all_of_it(orders):
    contracts = [orders.contract]
    orders.change(None, order(1, 3))
    sent = at(1)
    orders.shop.flush()
    assert complete.behind(orders.settings, contracts, sent) == [orders.contract.name], "Kafka has more than bronze"
    bronze.ingest(orders.spark, orders.settings, orders.contract, "run")
    assert complete.behind(orders.settings, contracts, sent) == [orders.contract.name], "bronze has more than silver"
    orders.refine()
    assert complete.behind(orders.settings, contracts, datetime.now(UTC)) == [], "nobody writes any more"
    orders.change(None, order(2, 3))
    orders.shop.flush()
    assert complete.behind(orders.settings, contracts, sent) == [], "the log has passed it"
    assert complete.behind(orders.settings, contracts, datetime.now(UTC)) == [orders.contract.name]


@pytest.mark.parametrize("source", [2], indirect=True)
def test_a_day_is_not_complete_while_a_slower_partition_has_more_of_it(source):
    spark, settings, contract = source.spark, source.settings, source.contract
    source.insert("a", 1_000, partition=0)
    source.insert("b", 1_000, partition=1)
    source.refine()
    source.insert("c", 1_500, partition=1)
    source.insert("d", 3_000, partition=0)
    source.shop.flush()
    bronze.ingest(spark, settings, contract, "run", until={0: 2, 1: 1})
    silver.refine(spark, settings, contract, "run")
    assert complete.behind(settings, [contract], at(2)) == [contract.name], (
        "a partition has passed it, and the other has not"
    )
    source.refine()
    assert complete.behind(settings, [contract], at(2)) == [], "nobody writes to the other any more"
