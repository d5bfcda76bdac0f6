"""Reset a query: compute it again from its topics' first offsets, from a time, or from offsets, or let it go on from gold.

First plan, then reset. Without its old state, a query can only compute rows whose events all come after its start. So a
generation writes rows from a fixed time (``since``) on. Later rows are removed, and all of their events are read again. Earlier
rows must be final: in live, where they stay as they are, or in gold, from where the live table gets them. So a query can go on
although retention has taken records that it has not read.

A view can also go on from gold. A view of windows has gold's rows of all windows that are final there, and counts the others
anew. A keyed view has gold's rows, and the machines of the roll-up that wrote them. That needs no old records, also where rows
depend on all of history.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from kafka import TopicPartition
from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch.going_on import newest_machines
from lockstep.checkpoints.errors import ActionRefused
from lockstep.contracts import CONTRACTS, of_kind
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import BEGINNING, MICROSECOND
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.kafka_clients import consumer
from lockstep.live import generations, seeds
from lockstep.live.frontier import batch_final, live_final
from lockstep.live.seeds import Seed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from lockstep.definition import Keyed, Windowed
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
_OFFSETS = re.compile(r"(?:(?P<topic>[A-Za-z0-9._-]+):)?(?P<partition>\d{1,6})=(?P<offset>\d{1,18})")
EARLIEST, GOLD = "earliest", "gold"
_AFTER_ROLL_UP = "ask again when the DAGs ingest and refine have run, which roll it up."
_NEEDS_HISTORY = (
    f"{{}}: its rows depend on all of history, so it can only be reset to {EARLIEST}, while its topics still hold their first "
    f"records, or to {GOLD}; or restore a savepoint."
)


@dataclass(frozen=True)
class ResetPlan:
    """Where a new generation will start.

    Args:
        starts: offsets by topic and partition; a topic that is not named starts at its first offset.
        since: the generation writes rows from this instant (UTC) on; None: all rows.
        seed: the point of gold from which it goes on; None: it begins without rows and machines.
        machines: gold's machines at that point.
    """

    query: str
    starts: Starts
    since: datetime | None
    seed: Seed | None = None
    machines: "pa.Table | None" = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        starts = (f"{t}-{p} at {o:,}" for t, offsets in sorted(self.starts.items()) for p, o in sorted(offsets.items()))
        rows = f"rows from {self.since:%F %T} UTC on" if self.since else "all rows"
        if self.seed:
            rows = f"the rows and machines of version {self.seed.version} of gold, until {self.seed.until:%F %T} UTC"
        return f"{self.query}: {rows}, from {', '.join(starts) or 'the first offsets'}"


@dataclass(frozen=True)
class Reset:
    """A generation that was created by a reset."""

    plan: ResetPlan
    generation: int

    def __str__(self) -> str:
        return f"{self.plan}: generation {self.generation} begins."


def plan(spark: "SparkSession", settings: "Settings", view: View, to: str) -> ResetPlan:
    """Plan where the view's query would start. It changes nothing.

    Args:
        to: ``earliest``, ``gold``, a time in ISO 8601 with its zone, or ``[topic:]partition=offset,…`` for every partition.

    Raises:
        ActionRefused: ``to`` is none of these, is out of range, or would leave rows half counted.
    """
    topics = [CONTRACTS[stream].topic for stream in view.streams]
    bounds = offsets_of_topics(settings, topics)
    if to == GOLD:
        return _plan_from_gold(spark, settings, view, bounds)
    if to == EARLIEST:
        starts = {t: {p: first for p, (first, _) in b.partitions.items()} for t, b in bounds.items()}
        if all(first == 0 for offsets in starts.values() for first in offsets.values()):
            return ResetPlan(view.name, {}, None)
        return _plan_at_offsets(spark, settings, view, starts)
    if _OFFSETS.match(to):
        return _plan_at_offsets(spark, settings, view, _parse_offsets(view, bounds, topics, to))
    since = view.first_row_at(_parse_time(to))
    return _checked(settings, view, _starts_at(settings, view, bounds, since), since)


def _plan_at_offsets(spark: "SparkSession", settings: "Settings", view: View, starts: Starts) -> ResetPlan:
    if view.needs_all_history:
        raise ActionRefused(_NEEDS_HISTORY.format(view.name))
    newest = _newest_below(spark, settings, view.streams, view, starts)
    return _checked(settings, view, starts, _first_row_after(view, newest))


def _plan_from_gold(
    spark: "SparkSession", settings: "Settings", view: View, bounds: "Mapping[str, TopicOffsets]"
) -> ResetPlan:
    """Changes go on where gold has stopped. Of events, those count that gold's machines have not processed: by their times."""
    if not view.has_machines:
        return _plan_from_final_windows(settings, view, bounds)
    entry = ledger.latest(settings, gold_of(view))
    machines = newest_machines(settings, cast("Keyed", view), entry)
    if entry is None or entry.until is None or machines is None:
        raise ActionRefused(f"{gold_of(view)} has no machines from which {view.name} could go on: {_AFTER_ROLL_UP}")
    ends = {(r.topic, r.partition): r.end for r in entry.ranges}
    starts = _starts_at(settings, view, bounds, entry.until)
    events = of_kind("events", view.streams)
    for topic in bounds.keys() - {contract.topic for contract in events.values()}:
        starts[topic] = {p: ends.get((topic, p), 0) for p in bounds[topic].partitions}
    for topic, offsets in starts.items():
        for p, (first, _) in bounds[topic].partitions.items():
            if ends.get((topic, p), 0) < first or offsets[p] < first:
                raise ActionRefused(
                    f"{topic}-{p}: gold has read up to offset {ends.get((topic, p), 0):,}, and the log begins at {first:,}: "
                    f"{_AFTER_ROLL_UP}"
                )
    newest = _newest_below(spark, settings, [*events], view, starts)
    if newest is not None and newest >= entry.until:
        raise ActionRefused(
            f"{view.name}: an event of {newest:%F %T} UTC is gone from the log, and gold is final only before "
            f"{entry.until:%F %T}: {_AFTER_ROLL_UP}"
        )
    return ResetPlan(view.name, starts, None, Seed(entry.version, entry.until), machines)


def _plan_from_final_windows(settings: "Settings", view: View, bounds: "Mapping[str, TopicOffsets]") -> ResetPlan:
    """The windows that are final in gold stay, and all later ones are counted anew."""
    final = batch_final(settings, view)
    if final is None or final <= BEGINNING:
        raise ActionRefused(f"{gold_of(view)} has no final window from which {view.name} could go on: {_AFTER_ROLL_UP}")
    # Those before a window are final when the one before it is: when its own start has passed, and what they overlap.
    since = view.first_row_at(final - view.overlap + MICROSECOND) - cast("Windowed", view).slide
    return _checked(settings, view, _starts_at(settings, view, bounds, since), since)


def reset(settings: "Settings", planned: ResetPlan, reason: str, by: str, run_id: str | None = None) -> Reset:
    """Create the planned generation. Whoever runs the query clears its table and switches to the new generation."""
    begins = with_copy(settings, planned)
    number = generations.advance(
        settings, planned.query, reason, by, planned.starts, planned.since, run_id=run_id, seed=begins.seed
    )
    return Reset(planned, number)


def with_copy(settings: "Settings", planned: ResetPlan) -> ResetPlan:
    """The plan with a copy of gold's machines, if it goes on from gold: batch keeps its own for a few roll-ups only."""
    if planned.seed is None or planned.machines is None:
        return planned
    copy = seeds.copies(settings, planned.query).save(planned.machines)
    return replace(planned, seed=replace(planned.seed, copy=copy))


def _parse_time(to: str) -> datetime:
    try:
        time = datetime.fromisoformat(to)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ActionRefused(
            f"{to!r} is not where a query can begin: use {EARLIEST}, {GOLD}, a time with its zone such as "
            "2026-11-20T10:00:00Z, or offsets such as 0=120,1=88,2=93."
        )
    return time.astimezone(UTC)


def _parse_offsets(view: View, bounds: "Mapping[str, TopicOffsets]", topics: list[str], to: str) -> Starts:
    """The offsets that ``to`` names. Each must be one that its partition has, or the next one."""
    starts: dict[str, dict[int, int]] = {}
    for part in to.split(","):
        match = _OFFSETS.fullmatch(part.strip())
        if match is None:
            raise ActionRefused(f"{part!r} is not an offset: write partition=offset, or topic:partition=offset.")
        topic = match["topic"] or topics[0]
        if topic not in topics or (match["topic"] is None and len(topics) > 1):
            raise ActionRefused(f"{view.name} reads {', '.join(topics)}: name one of them in {part.strip()!r}.")
        starts.setdefault(topic, {})[int(match["partition"])] = int(match["offset"])
    for topic, existing in bounds.items():
        if starts.get(topic, {}).keys() != existing.partitions.keys():
            raise ActionRefused(
                f"{topic} has the partitions {sorted(existing.partitions)}: give an offset for each, and for no other."
            )
        for partition, offset in sorted(starts[topic].items()):
            first, last = existing.partitions[partition]
            if not first <= offset <= last:
                raise ActionRefused(f"{topic}-{partition} holds offsets [{first}, {last}): {offset} is out of range.")
    return starts


def _starts_at(
    settings: "Settings", view: View, bounds: "Mapping[str, TopicOffsets]", since: datetime
) -> dict[str, dict[int, int]]:
    """The offsets, by the brokers' time index, below which no event of the rows from ``since`` on lies."""
    starts: dict[str, dict[int, int]] = {}
    with closing(consumer(settings)) as reader:
        for stream in view.streams:
            contract = CONTRACTS[stream]
            # An event's clock may be ahead of its arrival by as much as the contract allows. Kafka knows no time before 1970.
            at = max(int((since - view.lookback_time - contract.max_clock_skew).timestamp() * 1000), 0)
            partitions = bounds[contract.topic].partitions
            answers = reader.offsets_for_times({TopicPartition(contract.topic, p): at for p in partitions})
            offsets = {tp.partition: answer.offset for tp, answer in answers.items() if answer is not None}
            starts[contract.topic] = {p: offsets.get(p, last) for p, (_, last) in partitions.items()}
    return starts


def _newest_below(
    spark: "SparkSession", settings: "Settings", streams: Iterable[str], view: View, starts: Starts
) -> datetime | None:
    """The time (UTC) of the newest event of some streams below the offsets, from silver; None where there is no event.

    Raises:
        ActionRefused: silver has not processed all offsets below these.
    """
    newest: list[datetime] = []
    for stream in streams:
        contract = CONTRACTS[stream]
        table, below = Tables.of(contract).log, starts[contract.topic]
        entry = ledger.latest(settings, table)
        ends = {r.partition: r.end for r in entry.ranges} if entry else {}
        behind = [p for p, offset in below.items() if ends.get(p, 0) < offset]
        if behind:
            raise ActionRefused(
                f"{table} has not reached these offsets in partition {behind[0]} yet, so which rows they belong to is not known. "
                f"Wait for the DAGs ingest and refine, or use a time, or {EARLIEST}."
            )
        parts = " OR ".join(f"(_partition = {p} AND _offset < {offset})" for p, offset in below.items())
        events = lake.read(spark, settings, table).where(parts)
        time = events.agg(F.max(F.expr(view.times[stream]))).collect()[0][0]
        if time is not None:
            newest.append(time.replace(tzinfo=UTC))
    return max(newest, default=None)


def _first_row_after(view: View, newest: datetime | None) -> datetime | None:
    """The time of the first row that depends on no event at or before ``newest``; None where every row may be written."""
    if newest is None:
        return None
    return view.first_row_at(newest + view.lookback_time + MICROSECOND)


def _checked(settings: "Settings", view: View, starts: Starts, since: datetime | None) -> ResetPlan:
    """The plan. It is refused if the rows before ``since`` are final in neither layer."""
    if since is None:
        return ResetPlan(view.name, starts, None)
    if view.needs_all_history:
        raise ActionRefused(_NEEDS_HISTORY.format(view.name))
    finals = {"live": live_final(settings, view), "gold": batch_final(settings, view)}
    if all(final is None or since + view.overlap > final for final in finals.values()):
        until = " and ".join(
            f"before {final - view.overlap:%F %T} UTC in {layer}"
            if final and final > BEGINNING
            else f"not at all yet in {layer}"
            for layer, final in finals.items()
        )
        raise ActionRefused(
            f"{view.name}: its rows are final {until}; a reset would keep those before {since:%F %T} UTC, some of them half "
            "counted. Choose an earlier point, or wait until the DAGs have made gold final up to there."
        )
    return ResetPlan(view.name, starts, since)
