"""The work of the tasks of the DAGs ``replay`` and ``replay_undo``: one function for each stage, as in :mod:`lockstep.tasks`.

A stage that is refused raises :class:`~lockstep.replay.request.ReplayRefused`, and would be refused again.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.control.intervals import IntervalHeld
from lockstep.descriptions import committed, differing, planned, shadowed
from lockstep.lineage import tables
from lockstep.lineage.step import step
from lockstep.replay import run as replays
from lockstep.replay.parse import parse
from lockstep.replay.report import diff_as_markdown
from lockstep.replay.request import ReplayRefused
from lockstep.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


@contextmanager
def replaying() -> "Iterator[tuple[SparkSession, Settings]]":
    """Open a client for one stage of a replay."""
    settings = configuration.load()
    with connect(settings, "replay") as spark:
        yield spark, settings


@contextmanager
def refused_when_held() -> Iterator[None]:
    """Refuse a replay whose interval somebody else holds."""
    try:
        yield
    except IntervalHeld as held:
        raise ReplayRefused(str(held)) from held


def plan(params: dict[str, Any], run_id: str, by: str, results: Results) -> str:
    """Open the replay that a form describes, and hold its intervals; its id. The same run always has the same id.

    Raises:
        ReplayRefused: also when somebody else holds a part of the interval, who may be a person that takes days to answer.
    """
    request = parse(params)
    with replaying() as (spark, settings), refused_when_held():
        opened = replays.open_replay(spark, settings, request, by, run_id, replays.identify(request, run_id))
    results.add(*planned(opened.plan))
    return opened.id


def shadow(replay: str, run_id: str, results: Results) -> dict[str, Any]:
    """Compute the replay's shadow tables; the seconds that it took, and the version of the code."""
    with replaying() as (spark, settings):
        computed = replays.compute(spark, settings, replay, run_id)
    results.add(*shadowed(computed))
    return {"seconds": computed.seconds, "code_version": computed.code_version}


def diff(replay: str, run_id: str, results: Results) -> str:
    """Compare the replay's shadow tables with the rows that they would replace; the diff as Markdown."""
    with replaying() as (spark, settings):
        compared = replays.compare(spark, settings, replay, run_id)
    results.add(*differing(compared))
    return diff_as_markdown(replay, compared)


def approve(replay: str, run_id: str, by: str) -> None:
    """Approve the replay as a person."""
    with replaying() as (spark, settings):
        replays.approve(spark, settings, replay, run_id, by)


def approve_by_rule(replay: str, run_id: str) -> None:
    """Approve the replay if the rule of its request allows the diff."""
    with replaying() as (spark, settings):
        replays.approve_by_rule(spark, settings, replay, run_id)


def promote(replay: str, run_id: str, results: Results) -> dict[str, int]:
    """Promote the replay; by table, the version of the commit."""
    with replaying() as (spark, settings), step(settings, "replay.promote", run_id, (), tables.replayed()):
        versions = dict(replays.promote(spark, settings, replay, run_id).versions)
    results.add(*committed(versions, "replaced"))
    return versions


def discard(replay: str, run_id: str, by: str = "airflow") -> None:
    """Discard the replay."""
    with replaying() as (spark, settings):
        replays.discard(spark, settings, replay, run_id, by)


def undo(replay: str, run_id: str, by: str, results: Results) -> dict[str, Any]:
    """Undo the replay; the versions of the commits, and by view the number of windows that later writes keep.

    Raises:
        ReplayRefused: as for :func:`plan`.
    """
    with (
        replaying() as (spark, settings),
        refused_when_held(),
        step(settings, "replay.undo", run_id, (), tables.replayed()),
    ):
        undone = replays.undo(spark, settings, replay, run_id, by)
    results.add(*committed(undone.versions, "put back"))
    return undone.model_dump(mode="json", include={"versions", "kept"})
