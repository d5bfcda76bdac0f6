"""The worked examples on windows and on late rows, through Spark: in batch, live, and row by row in ``late``."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F
from tests.integration.views.conftest import run
from tests.shop import Shop

from lockstep.batch.rollup import roll_up
from lockstep.contracts import Contract
from lockstep.definition import Windowed
from lockstep.definition.windows import per_window
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.settings import Settings
from lockstep.views import VIEWS

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
    "tumbling_6": (6 * MINUTE, 6 * MINUTE, [0, 60, 120, 359, 360], {"10:00:00": 4, "10:06:00": 1}),
    "hopping_5_every_1": (
        5 * MINUTE,
        MINUTE,
        [299, 359],
        {f"10:0{n}:00": 2 if 1 <= n <= 4 else 1 for n in range(6)},
    ),
}
# By policy: the page, what it counts in the minute of the three rows (10:00:10 on time, 10:00:20 and 10:00:30 some seconds
# late), and what its ledger says of them.
POLICIES = {
    "ignore": ({}, 2, {"ignored": 1, "side": 0}),
    "correct": ({"correct_within": 2 * MINUTE}, 3, {"ignored": 0, "side": 0}),
    "side_stream": ({}, 2, {"ignored": 0, "side": 1}),
}
MARKED = {"ignore": 3, "correct": 4}


@dataclass(frozen=True)
class Played:
    views: dict[str, Windowed]
    entries: dict[str, Any]


def view_of(stream: Contract, page: str, size: timedelta, slide: timedelta, **more: Any) -> Windowed:
    """Views of one page, over the test's own stream."""

    def transform(rows: Any) -> Any:
        return per_window(rows.where(F.col("page") == page), size, slide, ["page"], F.count("*").alias("views"))

    given = {"transform": transform, "size": size, "slide": slide, "allowed_lateness": MINUTE} | more
    return replace(VIEWS["page_views_per_minute"], name=f"{page}_{stream.name[-8:]}", input=stream.name, **given)


def play(shop: Shop) -> None:
    """Every example on a page of its own, in one topic."""
    for page, (_, _, seconds, _) in WINDOWS.items():
        for n, second in enumerate(seconds):
            shop.view(f"{page}-{n}", second, page=page)
    # late_policies: allowed are 60 s.
    for name, second, late in (("on-time", 10, 0.5), ("30-s-late", 20, 30), ("90-s-late", 30, 90)):
        shop.view(name, second, arrives_after=late, page="late_policies")
    # watermark_order: the log's time less the allowed 5 s is the mark, so 10:00:08 comes when the log has passed 10:00:15.
    for second, arrives in ((0, 0.5), (5, 5.5), (8, 15.5), (12, 16)):
        shop.view(f"mark-{second}", second, arrives_after=arrives - second, page="watermark_order")
    shop.heartbeat(7200)
    shop.flush()


@pytest.fixture
def played(spark: Any, settings: Settings, stream: Contract, shop: Shop) -> Iterator[Played]:
    """All examples, in batch and live."""
    play(shop)
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    views = {page: view_of(stream, page, size, slide) for page, (size, slide, _, _) in WINDOWS.items()}
    for policy, (more, _, _) in POLICIES.items():
        late = view_of(stream, "late_policies", MINUTE, MINUTE, policy=policy, **more)
        views[policy] = replace(late, name=f"{policy}_{stream.name[-8:]}")
    for policy in MARKED:
        more = POLICIES[policy][0]
        mark = view_of(stream, "watermark_order", MINUTE, MINUTE, policy=policy, **more)
        views[f"{policy}_mark"] = replace(mark, name=f"{policy}_mark_{stream.name[-8:]}", allowed_lateness=5 * SECOND)
    entries = {name: roll_up(spark, settings, view, "run") for name, view in views.items()}
    for view in views.values():
        run(settings, view)
    yield Played(views, entries)


def counted(spark: Any, table: str) -> dict[str, int]:
    return {f"{row['window_start']:%H:%M:%S}": row["views"] for row in spark.table(table).collect()}


def test_both_layers_give_every_worked_answer(spark, played):
    for name, (_, _, _, answer) in WINDOWS.items():
        view = played.views[name]
        assert counted(spark, f"gold.{view.name}") == answer, name
        assert counted(spark, f"live.{view.name}") == answer, name
    late_policies(spark, played)
    watermark_order(spark, played)


def late_policies(spark, played):
    for policy, (_, answer, ledger) in POLICIES.items():
        view = played.views[policy]
        assert counted(spark, f"gold.{view.name}") == {"10:00:00": answer}, policy
        assert counted(spark, f"live.{view.name}") == {"10:00:00": answer}, policy
        assert played.entries[policy].counts.items() >= ledger.items(), policy
        late = spark.table(f"late.{view.name}").collect()
        assert [(r["event_id"], r["_late_by"].total_seconds()) for r in late] == [("90-s-late", 90)], policy
        assert [r["_counted"] for r in late] == [policy == "correct"]
        assert (late[0]["_topic"], late[0]["_partition"] >= 0, late[0]["_offset"] >= 0) == (view.input, True, True)


def watermark_order(spark, played):
    for policy, answer in MARKED.items():
        view = played.views[f"{policy}_mark"]
        assert counted(spark, f"gold.{view.name}") == {"10:00:00": answer}, policy
        assert counted(spark, f"live.{view.name}") == {"10:00:00": answer}, policy
        late = {row["event_id"]: row["_counted"] for row in spark.table(f"late.{view.name}").collect()}
        assert late["mark-8"] == (policy == "correct"), policy
        assert not late.keys() & {"mark-0", "mark-5", "mark-12"}, policy
