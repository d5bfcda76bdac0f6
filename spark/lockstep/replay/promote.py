"""Promote a shadow, and undo that: one commit a table, upstream first, then one switch of the published manifest.

Each commit is the next entry of its table's ledger, takes no offsets, and names the replay: so a run that died finds what it had
done, and what to put back is the version before that commit. The leases of all tables are held from the first to the last.
"""

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from lockstep import lake
from lockstep.batch.compute import interval, result
from lockstep.batch.rollup import bounded, covered, gold_of, summary, written_as
from lockstep.contracts import CONTRACTS
from lockstep.control import advance, control, lease
from lockstep.crashpoint import crashpoint
from lockstep.definition import View, Windowed
from lockstep.ingest import ledger
from lockstep.ingest.ranges import Range, size, to_where
from lockstep.lake import Txn
from lockstep.refine.silver import QUARANTINE, QUARANTINE_PROPERTIES
from lockstep.refine.tables import Tables
from lockstep.replay.diff import span_of
from lockstep.replay.plan import Part, Span
from lockstep.replay.record import Replay
from lockstep.replay.request import Refused
from lockstep.replay.tables import below, current, others, own, part_of, shadow_of, still, version, written
from lockstep.serving import manifest
from lockstep.views import VIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from lockstep.lake import Commit
    from lockstep.settings import Settings

_VERSIONS = {"promote": 1, "undo": 2}


def promote(spark: "SparkSession", settings: "Settings", replay: Replay, run_id: str) -> dict[str, int]:
    """Put the shadow in the place of the interval's rows; what arrived since it was computed is caught up.

    Returns:
        By table, the version of the replay's commit.
    """
    plan, made = replay.plan, replay.stages["shadowed"]
    tables = written(plan)
    with ExitStack() as held:
        for table in tables:
            held.enter_context(lease(settings, table, run_id))
        _hold(spark, settings, replay, tables)
        for part in plan.parts:
            if holes := made["holes"].get(part.stream, {}).get("ranges"):
                _promote_bronze(spark, settings, replay, part, [Range(**r) for r in holes], run_id)
        for part in plan.parts:
            if part_of(plan, part.stream):
                _promote_silver(spark, settings, replay, part, run_id)
        for target in plan.targets:
            _promote_gold(spark, settings, replay, VIEWS[target.view], run_id)
        crashpoint("shadow-promoted")
        versions = {table: commit.version for table, commit in _commits(settings, replay, "promote").items()}
        manifest.publish(spark, settings, replay.id, versions)
    return versions


def undo(spark: "SparkSession", settings: "Settings", replay: Replay, run_id: str) -> dict[str, Any]:
    """Put back the rows of the interval as they were before the promotion; what came to other intervals since stays.

    A window that rows have reached since the promotion, or anybody has changed, stays as it is now: put back, it would lack them.
    Of a keyed view that holds for each key.

    Returns:
        ``versions`` by table, and ``kept``: by view how many windows, or keys, stay as they are.
    """
    promoted = _commits(settings, replay, "promote")
    kept: dict[str, int] = {}
    with ExitStack() as held:
        for table in promoted:
            held.enter_context(lease(settings, table, run_id))
        _hold(spark, settings, replay, list(promoted))
        for table, commit in promoted.items():
            if "undo" in own(settings, table, replay.id, replay.opened_at):
                continue
            layer, _, name = table.partition(".")
            if layer == "gold":
                kept[name] = _undo_gold(spark, settings, replay, VIEWS[name], commit, run_id)
            else:
                _undo_rows(spark, settings, replay, table, commit, run_id)
        versions = {table: commit.version for table, commit in _commits(settings, replay, "undo").items()}
        manifest.publish(spark, settings, replay.id, versions)
    return {"versions": versions, "kept": kept}


def _hold(spark: "SparkSession", settings: "Settings", replay: Replay, tables: list[str]) -> None:
    """Keep readers at what they see until all tables are done; one table alone is never seen half."""
    if len(tables) > 1:
        manifest.hold(spark, settings, replay.id, {table: version(settings, table) for table in tables})


def has_begun(settings: "Settings", replay: Replay) -> bool:
    """Whether any table has been promoted, although the record may not know it yet."""
    return bool(_commits(settings, replay, "promote"))


def _commits(settings: "Settings", replay: Replay, stage: str) -> "dict[str, Commit]":
    found = {t: own(settings, t, replay.id, replay.opened_at).get(stage) for t in written(replay.plan)}
    return {table: commit for table, commit in found.items() if commit}


def _record(replay: Replay, stage: str, writer: str, table: ledger.Entry, run_id: str, **more: Any) -> dict[str, Any]:
    """The next entry of the table's ledger, by its own writer: so a dead run's write cannot come in under its number."""
    names = {"replay": replay.id, "stage": stage}
    until = {"until": table.until} if table.until else {}
    return ledger.record(writer, table, run_id, still(table), mixed=True, **names, **until, **more)


def _beside(replay: Replay, stage: str, table: str, run_id: str) -> tuple[Txn, dict[str, Any]]:
    """Transaction and record for a table that has no ledger of its own."""
    record = {"writer": "replay", "replay": replay.id, "stage": stage, "run_id": run_id}
    return Txn(f"replay:{table}:{replay.id}", _VERSIONS[stage]), record


def _is_done(settings: "Settings", replay: Replay, table: str, stage: str) -> bool:
    return stage in own(settings, table, replay.id, replay.opened_at)


def _promote_bronze(
    spark: "SparkSession", settings: "Settings", replay: Replay, part: Part, holes: list[Range], run_id: str
) -> None:
    table = Tables.of(CONTRACTS[part.stream]).bronze
    if _is_done(settings, replay, table, "promote"):
        return
    rows = lake.read(spark, settings, shadow_of(table, replay.id))
    _commit_bronze(settings, replay, "promote", table, rows, holes, run_id)


def _commit_bronze(
    settings: "Settings",
    replay: Replay,
    stage: str,
    table: str,
    rows: "DataFrame",
    holes: list[Range],
    run_id: str,
) -> None:
    done = current(settings, table)
    ranges = [r.as_dict() for r in holes]
    counts = {"counts": {"rows": 0}, "rows": 0, "replayed": ranges}
    record = _record(replay, stage, "ingest", done, run_id, **counts)
    txn = ledger.txn(table, record)
    if stage == "promote":
        lake.append(rows, settings, table, txn, record)
    else:
        lake.replace(rows, settings, table, to_where(holes), txn, record)
    entry = ledger.committed(settings, table, record)
    with control(settings) as connection:
        advance(connection, table, entry.version, entry.seq, list(entry.ranges))


def _promote_silver(spark: "SparkSession", settings: "Settings", replay: Replay, part: Part, run_id: str) -> None:
    contract = CONTRACTS[part.stream]
    tables = Tables.of(contract)
    if _is_done(settings, replay, tables.log, "promote"):
        return
    rows = lake.read(spark, settings, shadow_of(tables.log, replay.id))
    bad = lake.read(spark, settings, shadow_of(tables.quarantine, replay.id))
    if not lake.exists(settings, tables.quarantine) and not bad.isEmpty():
        lake.create(spark, settings, tables.quarantine, QUARANTINE, properties=QUARANTINE_PROPERTIES)
    delta = replay.stages["shadowed"]["silver"][part.stream]["delta"]
    _commit_silver(spark, settings, replay, "promote", part, rows, bad, delta, run_id)


def _commit_silver(
    spark: "SparkSession",
    settings: "Settings",
    replay: Replay,
    stage: str,
    part: Part,
    rows: "DataFrame",
    bad: "DataFrame",
    delta: "Mapping[str, int]",
    run_id: str,
) -> None:
    """Quarantine first, then the current rows of a change stream, and last the log, whose ledger says that it is done."""
    tables = Tables.of(CONTRACTS[part.stream])
    nothing_bad = delta["quarantined"] == 0 and bad.isEmpty()
    if lake.exists(settings, tables.quarantine) and not (
        nothing_bad or _is_done(settings, replay, tables.quarantine, stage)
    ):
        lake.replace(bad, settings, tables.quarantine, part.where, *_beside(replay, stage, tables.quarantine, run_id))
    if tables.current and not _is_done(settings, replay, tables.current, stage):
        log = lake.read(spark, settings, tables.log).where(f"NOT {part.where}").unionByName(rows)
        newest = _newest(log, CONTRACTS[part.stream].unique_id)
        lake.replace(newest, settings, tables.current, "true", *_beside(replay, stage, tables.current, run_id))
    replayed = [r.as_dict() for r in part.ranges]
    done = current(settings, tables.log)
    record = _record(replay, stage, "refine", done, run_id, counts=dict(delta), replayed=replayed)
    lake.replace(rows, settings, tables.log, part.where, ledger.txn(tables.log, record), record)
    ledger.committed(settings, tables.log, record)


def _newest(log: "DataFrame", key: tuple[str, ...]) -> "DataFrame":
    """The newest change of each row of the source."""
    window = Window.partitionBy(*key).orderBy(F.desc("_commit_lsn"), F.desc("_lsn"), F.desc("_offset"))
    return log.withColumn("_rank", F.row_number().over(window)).where("_rank = 1").drop("_rank")


def _promote_gold(spark: "SparkSession", settings: "Settings", replay: Replay, view: View, run_id: str) -> None:
    table, shadow = gold_of(view), replay.stages["shadowed"]["gold"][view.name]
    if shadow["span"] is None or _is_done(settings, replay, table, "promote"):
        return
    done = current(settings, table)
    span: Span = span_of(shadow)
    rows = lake.read(spark, settings, shadow_of(table, replay.id))
    rows, span = _caught_up(spark, settings, replay, view, rows, span, done)
    counts = _recounted(spark, settings, replay, view, done, after="promote")
    _commit_gold(settings, replay, "promote", view, rows, span, counts, run_id)


def _commit_gold(
    settings: "Settings",
    replay: Replay,
    stage: str,
    view: View,
    rows: "DataFrame",
    span: Span,
    counts: "Mapping[str, int]",
    run_id: str,
) -> None:
    table = gold_of(view)
    done = current(settings, table)
    sources = {log: version(settings, log) for log in _logs(view)}
    written = written_as(view, span)
    if stage == "promote" and replay.plan.late:
        # Live still follows the policy, so that these windows differ for a known reason.
        written["definition"] = f"with late rows, by {replay.id}"
    if stage == "undo":
        # Whose rows they are now is told by what wrote them before: not by today's definition, at any rate.
        written["definition"] = f"before {replay.id}"
    record = _record(replay, stage, "rollup", done, run_id, counts=dict(counts), sources=sources, **written)
    lake.replace(rows, settings, table, interval(view, *span), ledger.txn(table, record), record)
    ledger.committed(settings, table, record)


def _logs(view: View) -> "Iterator[str]":
    return (Tables.of(CONTRACTS[stream]).log for stream in view.streams)


def _caught_up(
    spark: "SparkSession",
    settings: "Settings",
    replay: Replay,
    view: View,
    rows: "DataFrame",
    span: Span,
    done: ledger.Entry,
) -> "tuple[DataFrame, Span]":
    """The shadow's rows at gold's position of now: what rows touch that gold has taken since is computed again."""
    new = _since(done, [Range(**r) for r in replay.stages["shadowed"]["gold"][view.name]["ranges"]])
    if not size(new):
        return rows, span
    silver = {stream: covered(spark, settings, stream, done) for stream in view.streams}
    counting = view.with_late() if replay.plan.late else view
    if not isinstance(view, Windowed):
        # Its state may reach anywhere, and it may be final further on than it was.
        wide = bounded(view, done, span[0], max(span[1], _asked(replay, view) or span[1]))
        return result(counting, silver, *wide), wide
    found = summary(view, {stream: silver[stream].where(_of(new, stream)) for stream in view.streams})
    if found["first"] is None:
        return rows, span
    low, high = (moment.replace(tzinfo=UTC) for moment in view.windows_of(found["first"], found["last"]))
    low, high = max(low, span[0]), min(high, span[1])
    if low >= high:
        return rows, span
    return rows.where(f"NOT ({interval(view, low, high)})").unionByName(result(counting, silver, low, high)), span


def _since(done: ledger.Entry, before: list[Range]) -> list[Range]:
    """What gold has taken since it stood at other ranges."""
    then = {(r.topic, r.partition): r.end for r in before}
    return [Range(r.topic, r.topic_id, r.partition, then.get((r.topic, r.partition), 0), r.end) for r in done.ranges]


def _of(ranges: list[Range], stream: str) -> str:
    """A SQL predicate for the rows of a stream's silver in the ranges."""
    return to_where([r for r in ranges if r.topic == CONTRACTS[stream].topic], "_partition", "_offset")


def _asked(replay: Replay, view: View) -> datetime | None:
    return next((t.high for t in replay.plan.targets if t.view == view.name), None)


def _recounted(
    spark: "SparkSession", settings: "Settings", replay: Replay, view: View, done: ledger.Entry, after: str
) -> dict[str, int]:
    """By how much the view's sums change, because silver's rows of the interval are others now."""
    tables = replay.stages["compared"]["tables"]
    logs = [tables.get(Tables.of(CONTRACTS[s]).log) for s in view.streams if part_of(replay.plan, s)]
    if all(log is None or log["windows"] == log["equal"] for log in logs):
        return {}
    changed: dict[str, dict[str, DataFrame]] = {"old": {}, "new": {}}
    for stream in view.streams:
        part, contract = part_of(replay.plan, stream), CONTRACTS[stream]
        table = Tables.of(contract).log
        commit = own(settings, table, replay.id, replay.opened_at).get(after) if part else None
        for side, at in (("old", -1), ("new", 0)):
            rows = lake.read(spark, settings, table, commit.version + at if commit else None)
            here = f"{part.where} AND {below(done.ranges, contract.topic)}" if part and commit else "false"
            changed[side][stream] = rows.where(here)
    old, new = (summary(view, changed[side])["counts"] for side in ("old", "new"))
    return {name: new[name] - old[name] for name in new}


def _undo_rows(
    spark: "SparkSession", settings: "Settings", replay: Replay, table: str, commit: "Commit", run_id: str
) -> None:
    holes = [Range(**r) for r in commit.record["replayed"]]
    before = lake.read(spark, settings, table, commit.version - 1)
    if table.startswith("bronze."):
        _commit_bronze(settings, replay, "undo", table, before.where(to_where(holes)), holes, run_id)
        return
    part = next(p for p in replay.plan.parts if Tables.of(CONTRACTS[p.stream]).log == table)
    quarantine = Tables.of(CONTRACTS[part.stream]).quarantine
    bad = before.where("false")
    if lake.exists(settings, quarantine):
        there = own(settings, quarantine, replay.id, replay.opened_at).get("promote")
        bad = lake.read(spark, settings, quarantine, there.version - 1 if there else None).where(part.where)
    delta = {name: -count for name, count in commit.record["counts"].items()}
    _commit_silver(spark, settings, replay, "undo", part, before.where(part.where), bad, delta, run_id)


def _undo_gold(
    spark: "SparkSession", settings: "Settings", replay: Replay, view: View, commit: "Commit", run_id: str
) -> int:
    """Returns how many windows, or keys of a keyed view, stay as they are now."""
    table = gold_of(view)
    low, high = (datetime.fromisoformat(moment) for moment in commit.record["span"])
    where = interval(view, low, high)
    before, then, now = (
        lake.read(spark, settings, table, at).where(where) for at in (commit.version - 1, commit.version, None)
    )
    done = current(settings, table)
    kept = _touched(spark, settings, view, now, then, _since(done, list(ledger.entry(commit).ranges))).persist()
    try:
        rows = before
        if count := kept.count():
            keys = kept.columns
            rows = before.join(kept, keys, "left_anti").unionByName(now.join(kept, keys, "left_semi"))
        counts = _recounted(spark, settings, replay, view, done, after="undo")
        _commit_gold(settings, replay, "undo", view, rows.select(*before.columns), (low, high), counts, run_id)
        return count
    finally:
        kept.unpersist()


def _touched(
    spark: "SparkSession",
    settings: "Settings",
    view: View,
    now: "DataFrame",
    then: "DataFrame",
    new: list[Range],
) -> "DataFrame":
    """What must stay as it is now: windows that rows have reached since, or anybody has changed; of a keyed view its keys."""
    if not isinstance(view, Windowed):
        keys = list(view.key)
        return now.exceptAll(then).select(*keys).unionAll(then.exceptAll(now).select(*keys)).distinct()
    changed = now.exceptAll(then).unionAll(then.exceptAll(now)).select("window_start")
    rows = lake.read(spark, settings, Tables.of(CONTRACTS[view.input]).log).where(_of(new, view.input))
    return changed.unionAll(_windows(view, rows.where(view.on_time))).distinct()


def _windows(view: Windowed, rows: "DataFrame") -> "DataFrame":
    """The starts of the windows that hold the rows."""
    size_, slide = (int(length.total_seconds() * 1_000_000) for length in (view.size, view.slide))
    at = f"unix_micros({view.event_time})"
    ends = rows.selectExpr(f"({at} - {size_}) div {slide} + 1 AS first", f"{at} div {slide} AS last")
    starts = ends.where("first <= last").selectExpr("explode(sequence(first, last)) AS n")
    return starts.selectExpr(f"timestamp_micros(n * {slide}) AS window_start")


def check_newest(settings: "Settings", replay: Replay) -> None:
    """Hold the replay's promotion against those that came after it.

    Raises:
        Refused: another was promoted over it.
    """
    for table, commit in _commits(settings, replay, "promote").items():
        for name, record in others(settings, table, commit):
            if _overlap(commit.record, record):
                raise Refused(f"{table}: the replay {name} was promoted over {replay.id} since. Undo {name} first.")


def _overlap(one: "Mapping[str, Any]", other: "Mapping[str, Any]") -> bool:
    if "span" in one and "span" in other:
        (low, high), (start, end) = ([datetime.fromisoformat(m) for m in r["span"]] for r in (one, other))
        # An upserted view is written as a whole, and its span may be empty.
        return (low < end and start < high) or low >= high or start >= end
    spans = {r["partition"]: (r["start"], r["end"]) for r in one.get("replayed", ())}
    return any(
        r["partition"] in spans and r["start"] < spans[r["partition"]][1] and spans[r["partition"]][0] < r["end"]
        for r in other.get("replayed", ())
    )
