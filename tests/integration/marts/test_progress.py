"""What a run of dbt says of each mart, and how one mart is built alone for the days of a run."""

import logging
from pathlib import Path

import pytest
from tests.integration.marts.test_published import TWICE
from tests.support.marts import Orders, order

from lockstep.marts import run as marts
from lockstep.marts.dbt_project import MartsFailed
from lockstep.marts.progress import Line, Progress, Reader, State
from lockstep.results import Results

BROKEN = "select no_such_column from {{{{ ref('{mart}') }}}}"


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "run.jsonl")


def lines(progress: Progress, mart: str) -> list[Line]:
    """What is said of a mart."""
    assert progress.file
    return [line for line in Reader(progress.file).new() if line.mart == mart]


def build(orders: Orders, progress: Progress) -> None:
    orders.refine()
    marts.bring_up(orders.spark, orders.settings, "run", Results(), progress)


def again(orders: Orders, progress: Progress) -> list[str]:
    """Build the second mart again, in another process than that of the run."""
    return marts.build_mart(orders.spark, orders.settings, orders.second, "run", Results(), Progress(progress.file))


def test_a_broken_model_is_told_why_and_the_others_that_they_passed_until_it_is_repaired_and_all_are_published(
    orders: Orders, progress: Progress
) -> None:
    orders.write(second=BROKEN)
    orders.change(None, order(1, 1))
    with pytest.raises(MartsFailed) as failure:
        build(orders, progress)
    assert failure.value.lasting
    assert progress.states == {orders.name: State.SUCCESS, orders.second: State.FAILED}
    assert progress.failed == {orders.second: [orders.second]}
    passed = " ".join(line.text for line in lines(progress, orders.name))
    assert f"OK created sql incremental model marts_built.{orders.name}" in passed
    assert f"PASS holds_{orders.name}" in passed
    reasons = [line.text for line in lines(progress, orders.second) if line.level == logging.ERROR]
    assert any("no_such_column" in reason for reason in reasons)
    compiled = next(reason.partition("the statement: ")[2] for reason in reasons if "the statement: " in reason)
    assert "select no_such_column" in Path(compiled).read_text()

    orders.write(second=TWICE)
    # Its mart alone would not fit to those that the run has taken back.
    assert {orders.name, orders.second} <= {*again(orders, progress)}
    assert (orders.mart(), orders.mart(orders.second)) == ({"2026-11-01": 1}, {"2026-11-01": 2})


def test_a_mart_of_a_run_that_was_published_is_built_again_alone(orders: Orders, progress: Progress) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1))
    build(orders, progress)
    said = [line.text for line in lines(progress, orders.second)]
    assert f"1 rows were written to marts.{orders.second}" in said
    orders.write(second=TWICE.replace("* 2", "* 3"))
    assert again(orders, progress) == [orders.second]
    assert orders.mart(orders.second) == {"2026-11-01": 3}


def test_a_test_that_fails_is_its_models_and_what_is_made_from_it_is_skipped(
    orders: Orders, progress: Progress
) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1, kind="broken"))
    with pytest.raises(MartsFailed) as failure:
        build(orders, progress)
    assert failure.value.lasting
    assert progress.states == {orders.name: State.FAILED, orders.second: State.SKIPPED}
    assert [*progress.failed.values()] == [[orders.name]]
    assert any("Got 1 result" in line.text for line in lines(progress, orders.name))
