"""Undo a promotion: put back the rows of its interval, one commit a table, as they were in the version before it.

The leases of all tables are held from the first to the last.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition import View, Windowed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.ledger.ranges import Range, to_where
from lockstep.replay.record import Replay
from lockstep.replay.request import Refused
from lockstep.replay.stage import Stage, commits, of_stream, since
from lockstep.replay.tables import current, others

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.lake import Commit
    from lockstep.settings import Settings


def undo(spark: "SparkSession", settings: "Settings", replay: Replay, run_id: str) -> dict[str, Any]:
    """Put back the rows of the interval as they were before the promotion; what came to other intervals since stays.

    A window that rows have reached since the promotion, or anybody has changed, stays as it is now: put back, it would lack them.
    Of a keyed view that holds for each key.

    Returns:
        ``versions`` by table, and ``kept``: by view how many windows, or keys, stay as they are.
    """
    stage = Stage(spark, settings, replay, "undo", run_id)
    promoted = commits(settings, replay, "promote")
    kept: dict[str, int] = {}
    with stage.over(list(promoted)):
        for table, commit in promoted.items():
            if stage.has(table):
                continue
            layer, _, name = table.partition(".")
            if layer == "gold":
                kept[name] = _gold(stage, VIEWS[name], commit)
            elif layer == "silver":
                _silver(stage, table, commit)
            else:
                holes = [Range(**r) for r in commit.record["replayed"]]
                before = stage.read(table, commit.version - 1).where(to_where(holes))
                stage.bronze(table, before, holes)
        return {"versions": stage.publish(), "kept": kept}


def check_newest(settings: "Settings", replay: Replay) -> None:
    """Hold the replay's promotion against those that came after it.

    Raises:
        Refused: another was promoted over it.
    """
    for table, commit in commits(settings, replay, "promote").items():
        for name, record in others(settings, table, commit):
            if _overlap(commit.record, record):
                raise Refused(f"{table}: the replay {name} was promoted over {replay.id} since. Undo {name} first.")


def _silver(stage: Stage, table: str, commit: "Commit") -> None:
    before = stage.read(table, commit.version - 1)
    part = next(p for p in stage.replay.plan.parts if Tables.of(CONTRACTS[p.stream]).log == table)
    quarantine = Tables.of(CONTRACTS[part.stream]).quarantine
    bad = before.where("false")
    if lake.exists(stage.settings, quarantine):
        there = stage.made(quarantine).get("promote")
        bad = stage.read(quarantine, there.version - 1 if there else None).where(part.where)
    delta = {name: -count for name, count in commit.record["counts"].items()}
    stage.silver(part, before.where(part.where), bad, delta)


def _gold(stage: Stage, view: View, commit: "Commit") -> int:
    """Returns how many windows, or keys of a keyed view, stay as they are now."""
    table = gold_of(view)
    low, high = (datetime.fromisoformat(moment) for moment in commit.record["span"])
    versions = (commit.version - 1, commit.version, None)
    before, then, now = (stage.read(table, at).where(view.interval(low, high)) for at in versions)
    new = since(current(stage.settings, table), list(ledger.entry(commit).ranges))
    kept = _touched(view, stage, now, then, new).persist()
    try:
        rows = before
        if count := kept.count():
            keys = kept.columns
            rows = before.join(kept, keys, "left_anti").unionByName(now.join(kept, keys, "left_semi"))
        stage.gold(view, rows.select(*before.columns), (low, high))
        return count
    finally:
        kept.unpersist()


@singledispatch
def _touched(view: View, _stage: Stage, now: "DataFrame", then: "DataFrame", _new: list[Range]) -> "DataFrame":
    """What must stay as it is now: the keys that anybody has changed since; of a windowed view the windows."""
    keys = list(view.key)
    return now.exceptAll(then).select(*keys).unionAll(then.exceptAll(now).select(*keys)).distinct()


@_touched.register(Windowed)
def _touched_windows(
    view: Windowed, stage: Stage, now: "DataFrame", then: "DataFrame", new: list[Range]
) -> "DataFrame":
    """The windows that rows have reached since, or that anybody has changed."""
    changed = now.exceptAll(then).unionAll(then.exceptAll(now)).select("window_start")
    rows = stage.read(Tables.of(CONTRACTS[view.input]).log).where(of_stream(new, view.input))
    return changed.unionAll(_windows(view, rows.where(view.on_time))).distinct()


def _windows(view: Windowed, rows: "DataFrame") -> "DataFrame":
    """The starts of the windows that hold the rows."""
    size_, slide = (int(length.total_seconds() * 1_000_000) for length in (view.size, view.slide))
    at = f"unix_micros({view.event_time})"
    ends = rows.selectExpr(f"({at} - {size_}) div {slide} + 1 AS first", f"{at} div {slide} AS last")
    starts = ends.where("first <= last").selectExpr("explode(sequence(first, last)) AS n")
    return starts.selectExpr(f"timestamp_micros(n * {slide}) AS window_start")


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if "span" in one and "span" in other:
        (low, high), (start, end) = ([datetime.fromisoformat(m) for m in r["span"]] for r in (one, other))
        # An upserted view is written as a whole, and its span may be empty.
        return (low < end and start < high) or low >= high or start >= end
    spans = {r["partition"]: (r["start"], r["end"]) for r in one.get("replayed", ())}
    return any(
        r["partition"] in spans and r["start"] < spans[r["partition"]][1] and spans[r["partition"]][0] < r["end"]
        for r in other.get("replayed", ())
    )
