"""What a run of dbt says of each mart and of its tests, and how one mart is built or tested alone for the days of a run."""

import logging
from pathlib import Path

import pytest
from tests.integration.marts.test_published import TWICE
from tests.support.marts import Orders, order

from lockstep import lake
from lockstep.marts import run as marts
from lockstep.marts.dbt_project import MartsFailed
from lockstep.marts.progress import Box, Kind, Line, Progress, Reader, State
from lockstep.results import Results

DAY = "2026-11-01"
BROKEN = "select no_such_column from {{{{ ref('{mart}') }}}}"


@pytest.fixture
def progress(tmp_path: Path) -> Progress:
    return Progress(tmp_path / "run.jsonl")


def run_of(mart: str) -> Box:
    return Box(mart, Kind.RUN)


def of_tests(mart: str) -> Box:
    return Box(mart, Kind.TEST)


def lines(progress: Progress, box: Box) -> list[Line]:
    """What is said of a box."""
    assert progress.file
    return [line for line in Reader(progress.file).new() if line.box == box]


def build(orders: Orders, progress: Progress) -> None:
    orders.refine()
    marts.bring_up(orders.spark, orders.settings, "run", Results(), progress)


def again(orders: Orders, progress: Progress, box: Box | None = None) -> list[str]:
    """Do a box again, that of the second mart if none is named, in another process than that of the run."""
    box = box or run_of(orders.second)
    return marts.build_again(orders.spark, orders.settings, box, "run", Results(), Progress(progress.file))


def test_a_broken_model_is_told_why_and_the_others_that_they_passed_until_it_is_repaired_and_all_are_published(
    orders: Orders, progress: Progress
) -> None:
    orders.write(second=BROKEN)
    orders.change(None, order(1, 1))
    with pytest.raises(MartsFailed) as failure:
        build(orders, progress)
    assert failure.value.lasting
    assert progress.states == {
        run_of(orders.name): State.SUCCESS,
        of_tests(orders.name): State.SUCCESS,
        run_of(orders.second): State.FAILED,
    }
    assert progress.failed == {orders.second: [run_of(orders.second)]}
    built, passed = (" ".join(line.text for line in lines(progress, Box(orders.name, kind))) for kind in Kind)
    assert f"OK created sql incremental model marts_built.{orders.name}" in built
    assert f"PASS holds_{orders.name}" in passed
    assert ("PASS" in built, "OK created" in passed) == (False, False)
    reasons = [line.text for line in lines(progress, run_of(orders.second)) if line.level == logging.ERROR]
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
    said = [line.text for line in lines(progress, run_of(orders.second))]
    assert f"1 rows were written to marts.{orders.second}" in said
    orders.write(second=TWICE.replace("* 2", "* 3"))
    assert again(orders, progress) == [orders.second]
    assert orders.mart(orders.second) == {"2026-11-01": 3}


def test_a_test_that_fails_is_red_alone_and_tests_and_publishes_again_when_rows_are_repaired(
    orders: Orders, progress: Progress
) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1, kind="broken"))
    with pytest.raises(MartsFailed) as failure:
        build(orders, progress)
    assert failure.value.lasting
    assert progress.states == {
        run_of(orders.name): State.SUCCESS,
        of_tests(orders.name): State.FAILED,
        run_of(orders.second): State.SKIPPED,
    }
    assert [*progress.failed.values()] == [[of_tests(orders.name)]]
    said = " ".join(line.text for line in lines(progress, of_tests(orders.name)))
    assert f"FAIL 1 holds_{orders.name}" in said
    assert "Got 1 result, configured to fail if != 0" in said
    assert not orders.spark.catalog.tableExists(f"marts.{orders.name}"), "nothing was published"

    orders.change(order(1, 1, kind="broken"), order(1, 1))
    orders.refine()
    # What it tests was taken back, so that it is built first.
    done = again(orders, progress, of_tests(orders.name))
    assert {orders.name, orders.second} <= {*done}
    assert (orders.mart(), orders.mart(orders.second)) == ({"2026-11-01": 1}, {"2026-11-01": 2})


def test_the_tests_of_a_mart_that_is_published_run_alone_and_take_back_nothing(
    orders: Orders, progress: Progress
) -> None:
    orders.write(second=TWICE)
    orders.change(None, order(1, 1))
    build(orders, progress)
    before = lake.newest_version(orders.settings, f"marts.{orders.name}")
    done = again(orders, progress, of_tests(orders.name))
    assert [name.startswith(f"holds_{orders.name}") for name in done] == [True]

    orders.write(second=TWICE, tests="      - holds: {{arguments: {{condition: orders > 1, day: day}}}}\n")
    with pytest.raises(MartsFailed, match="Got 1 result"):
        again(orders, progress, of_tests(orders.name))
    assert lake.newest_version(orders.settings, f"marts.{orders.name}") == before
    assert orders.mart() == {"2026-11-01": 1}
    assert progress.spans() == {(f"{DAY}T00:00:00+00:00", "2026-11-02T00:00:00+00:00"): True}
    assert again(orders, progress, of_tests(orders.second)) == []


def test_a_test_of_two_marts_is_in_the_boxes_of_both(orders: Orders, progress: Progress) -> None:
    orders.write(second=TWICE)
    folder = orders.settings.project / "dbt" / "tests"
    folder.mkdir()
    (folder / "both.sql").write_text(
        f"select 1 from {{{{ ref('{orders.name}') }}}} join {{{{ ref('{orders.second}') }}}} using (day) where false"
    )
    orders.change(None, order(1, 1))
    build(orders, progress)
    for mart in (orders.name, orders.second):
        assert any("PASS both" in line.text for line in lines(progress, of_tests(mart)))
        assert "both" in again(orders, progress, of_tests(mart))


def test_views_that_a_server_has_lost_are_all_made_again_with_a_mart_that_was_cleared(
    orders: Orders, progress: Progress
) -> None:
    orders.write(second=TWICE)
    view = f"seen_{orders.name}"
    (orders.models / f"{view}.sql").write_text(
        f"{{{{ config(materialized='view') }}}} select * from {{{{ ref('{orders.name}') }}}}"
    )
    orders.change(None, order(1, 1))
    build(orders, progress)
    for schema in (lake.BUILT, lake.MARTS):
        orders.spark.sql(f"DROP VIEW {schema}.{view}")
    again(orders, progress, run_of(orders.second))
    assert orders.mart(view) == {"2026-11-01": 1}
