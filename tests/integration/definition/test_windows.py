"""The worked examples on windows and on late rows, through Spark: in batch, live, and row by row in ``late``."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F
from tests.shop.integration.views.conftest import run, side_by_side
from tests.support.shop import Shop

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Windowed
from lockstep.definition.registry import VIEWS
from lockstep.definition.windows import COUNT
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine.silver import refine
from lockstep.settings import Settings

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)

# By example, and page: size, slide, the seconds after 10:00 at which events happen, and the windows with their counts.
WINDOWS = {
    "tumbling_60s": (MINUTE, MINUTE, [15, 45, 70, 110, 140], {"10:00:00": 2, "10:01:00": 2, "10:02:00": 1}),
    "hopping_60s_every_30s": (
        MINUTE,
        MINUTE / 2,
        [15, 45, 70],
        {"09:59:30": 1, "10:00:00": 2, "10:00:30": 2, "10:01:00": 1},
    ),
    "hopping_with_gaps": (
        6 * MINUTE,
        10 * MINUTE,
        [60 * minute for minute in (0, 5, 6, 9, 10, 15, 16, 20)],
        {"10:00:00": 2, "10:10:00": 2, "10:20:00": 1},
    ),
    "hopping_6_every_2": (
        6 * MINUTE,
        2 * MINUTE,
        [0, 60, 120],
        {"09:56:00": 2, "09:58:00": 3, "10:00:00": 3, "10:02:00": 1},
    ),
    "hopping_7_every_3": (
        7 * MINUTE,
        3 * MINUTE,
        [0, 60, 180],
        {"09:54:00": 1, "09:57:00": 3, "10:00:00": 3, "10:03:00": 1},
    ),
    "tumbling_6": (6 * MINUTE, 6 * MINUTE, [0, 60, 120, 359, 360], {"10:00:00": 4, "10:06:00": 1}),
    "hopping_5_every_1": (
        5 * MINUTE,
        MINUTE,
        [299, 359],
        {f"10:0{n}:00": 2 if 1 <= n <= 4 else 1 for n in range(6)},
    ),
}
# By policy: the second limit, what is counted of late_policies and of watermark_order, and what the ledger says of late rows.
POLICIES = {
    "ignore": (None, 2, 3, {"ignored": 2, "side_output": 0}),
    "correct": (2 * MINUTE, 3, 4, {"ignored": 0, "side_output": 0}),
    "side_output": (None, 2, 3, {"ignored": 0, "side_output": 2}),
}


@dataclass(frozen=True)
class Played:
    views: dict[str, Windowed]
    entries: dict[str, Any]


def view_of(stream: Contract, name: str, size: timedelta, slide: timedelta, **more: Any) -> Windowed:
    """A view of counts by page over the test's own stream; a minute late is allowed. In batch, windows are made of panes."""
    return replace(
        VIEWS["page_views_per_minute"],
        name=f"{name}_{stream.name[-8:]}",
        input=stream.name,
        measures={"views": COUNT},
        size=size,
        slide=slide,
        allowed_lateness=MINUTE,
        **more,
    )


def play(shop: Shop) -> None:
    """Every example on a page of its own, in one topic."""
    for page, (_, _, seconds, _) in WINDOWS.items():
        for n, second in enumerate(seconds):
            shop.view(f"{page}-{n}", second, page=page)
    for name, second, late in (("on-time", 10, 0.5), ("30-s-late", 20, 30), ("90-s-late", 30, 90)):
        shop.view(name, second, arrives_after=late, page="late_policies")
    # The mark is the log's time less the minute allowed: when 10:00:08 comes it is at 10:00:10, when 10:00:12 comes at 10:00:11.
    for second, arrives in ((0, 0.5), (5, 5.5), (8, 70), (12, 71)):
        shop.view(f"mark-{second}", second, arrives_after=arrives - second, page="watermark_order")
    shop.heartbeat(7200)
    shop.flush()


@pytest.fixture(scope="module")
def played(settings: Settings) -> Iterator[Played]:
    """All examples, in batch and live."""
    name = f"page_views_{uuid.uuid4().hex[:8]}"
    stream = CONTRACTS[name] = replace(CONTRACTS["page_views"], name=name, topic=name)
    views = {page: view_of(stream, page, size, slide) for page, (size, slide, _, _) in WINDOWS.items()}
    for policy, (limit, *_) in POLICIES.items():
        views[policy] = view_of(stream, policy, MINUTE, MINUTE, policy=policy, correct_within=limit)
    # The same windows, under the same policy.
    del views["tumbling_60s"]
    try:
        ensure_topics(settings, {name: stream})
        play(Shop(settings, stream))
        with connect(settings, "examples") as spark:
            ingest(spark, settings, stream, "run")
            refine(spark, settings, stream, "run")
            entries = {name: roll_up(spark, settings, view, "run") for name, view in views.items()}
        side_by_side(lambda view: run(settings, [view]), views.values())
        yield Played(views | {"tumbling_60s": views["ignore"]}, entries)
    finally:
        del CONTRACTS[name]


@pytest.fixture(params=["live", "gold"])
def counted(request: pytest.FixtureRequest, spark: Any, played: Played) -> Any:
    """By window, what a view says of a page in either layer."""

    def count(name: str, page: str) -> dict[str, int]:
        found = spark.table(f"{request.param}.{played.views[name].name}").where(F.col("page") == page).collect()
        return {f"{row['window_start']:%H:%M:%S}": row["views"] for row in found}

    return count


@pytest.mark.parametrize("name", WINDOWS)
def test_a_worked_example_of_windows(name, counted):
    assert counted(name, name) == WINDOWS[name][3]


@pytest.mark.parametrize("policy", POLICIES)
def test_late_policies(policy, counted):
    assert counted(policy, "late_policies") == {"10:00:00": POLICIES[policy][1]}


@pytest.mark.parametrize("policy", POLICIES)
def test_watermark_order(policy, counted):
    assert counted(policy, "watermark_order") == {"10:00:00": POLICIES[policy][2]}


@pytest.mark.parametrize("policy", POLICIES)
def test_late_rows_are_kept_with_their_offsets_under_every_policy(policy, spark, played):
    assert played.entries[policy].counts.items() >= POLICIES[policy][3].items()
    view = played.views[policy]
    late = spark.table(f"late.{view.name}").collect()
    assert sorted((row["event_id"], row["_late_by"].total_seconds()) for row in late) == [
        ("90-s-late", 90),
        ("mark-8", 62),
    ]
    assert {row["_counted"] for row in late} == {policy == "correct"}
    assert {row["_topic"] for row in late} == {view.input}
    assert len({(row["_partition"], row["_offset"]) for row in late}) == 2
