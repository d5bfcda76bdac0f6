"""Begin a query anew: from its topics' first offsets, from a time, or from offsets. Plans first, and refuses before it touches.

Without its old state, a query can only compute rows whose events all lie after where it begins. So a generation has a time from
which it writes (``since``): earlier rows stay as they are, later ones are cleared, and all of the latter's events are read again.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kafka import TopicPartition
from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.checkpoints.errors import Refused
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.tables import Tables
from lockstep.definition.view import MICROSECOND
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.kafka_clients import consumer
from lockstep.live import generations
from lockstep.live.frontier import live_final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings

Starts = Mapping[str, Mapping[int, int]]
_OFFSETS = re.compile(r"(?:(?P<topic>[A-Za-z0-9._-]+):)?(?P<partition>\d{1,6})=(?P<offset>\d{1,18})")
EARLIEST = "earliest"


@dataclass(frozen=True)
class Reset:
    """Where a new generation begins.

    Args:
        starts: offsets by topic and partition; topics that are not named begin at their first.
        since: it writes rows from this instant (UTC) on; None: all.
    """

    query: str
    starts: Starts
    since: datetime | None

    def __str__(self) -> str:
        ends = (f"{t}-{p} at {o:,}" for t, some in sorted(self.starts.items()) for p, o in sorted(some.items()))
        rows = f"rows from {self.since:%F %T} UTC on" if self.since else "all rows"
        return f"{self.query}: {rows}, from {', '.join(ends) or 'the first offsets'}"


def plan(spark: "SparkSession", settings: "Settings", view: View, to: str) -> Reset:
    """Say where the view's query would begin; reads, and changes nothing.

    Args:
        to: ``earliest``, a time in ISO 8601 with its zone, or ``[topic:]partition=offset,…`` for every partition.

    Raises:
        Refused: it is none of these, is out of range, or would leave rows half counted.
    """
    topics = [CONTRACTS[stream].topic for stream in view.streams]
    bounds = offsets_of_topics(settings, topics)
    if to == EARLIEST:
        starts: Starts = {t: {p: first for p, (first, _) in b.partitions.items()} for t, b in bounds.items()}
        if all(offset == 0 for ends in starts.values() for offset in ends.values()):
            return Reset(view.name, {}, None)
        return _checked(settings, view, starts, _boundary(view, _newest_below(spark, settings, view, starts)))
    if _OFFSETS.match(to):
        starts = _offsets(view, bounds, topics, to)
        return _checked(settings, view, starts, _boundary(view, _newest_below(spark, settings, view, starts)))
    since = view.first_row_at(_time(to))
    return _checked(settings, view, _starts_at(settings, view, bounds, since), since)


def reset(settings: "Settings", planned: Reset, why: str, by: str, run_id: str | None = None) -> int:
    """Begin the planned generation, and return its number. Whoever runs the query clears its table and takes it up."""
    return generations.advance(settings, planned.query, why, by, planned.starts, planned.since, run_id=run_id)


def _time(to: str) -> datetime:
    try:
        found = datetime.fromisoformat(to)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Refused(
            f"{to!r} is not where a query can begin: use {EARLIEST}, a time with its zone such as 2026-11-20T10:00:00Z, or "
            "offsets such as 0=120,1=88,2=93."
        )
    return found.astimezone(UTC)


def _offsets(view: View, bounds: "Mapping[str, TopicOffsets]", topics: list[str], to: str) -> Starts:
    """The offsets that ``to`` names, each of them one that its partition holds, or the next one."""
    starts: dict[str, dict[int, int]] = {}
    for part in to.split(","):
        found = _OFFSETS.fullmatch(part.strip())
        if found is None:
            raise Refused(f"{part!r} is not an offset: write partition=offset, or topic:partition=offset.")
        topic = found["topic"] or topics[0]
        if topic not in topics or (found["topic"] is None and len(topics) > 1):
            raise Refused(f"{view.name} reads {', '.join(topics)}: name one of them in {part.strip()!r}.")
        starts.setdefault(topic, {})[int(found["partition"])] = int(found["offset"])
    for topic, held in bounds.items():
        if starts.get(topic, {}).keys() != held.partitions.keys():
            raise Refused(
                f"{topic} has the partitions {sorted(held.partitions)}: give an offset for each, and for no other."
            )
        for partition, offset in sorted(starts[topic].items()):
            first, last = held.partitions[partition]
            if not first <= offset <= last:
                raise Refused(f"{topic}-{partition} holds offsets [{first}, {last}): {offset} is out of range.")
    return starts


def _starts_at(settings: "Settings", view: View, bounds: "Mapping[str, TopicOffsets]", since: datetime) -> Starts:
    """The offsets from which on lie all events of the rows from ``since`` on, by the brokers' time index."""
    starts: dict[str, dict[int, int]] = {}
    with closing(consumer(settings)) as reader:
        for stream in view.streams:
            contract = CONTRACTS[stream]
            # An event may claim to have happened a little after it arrived.
            at = int((since - view.lookback_time - contract.max_clock_skew).timestamp() * 1000)
            held = bounds[contract.topic].partitions
            found = reader.offsets_for_times({TopicPartition(contract.topic, p): at for p in held})
            by_partition = {tp.partition: one.offset for tp, one in found.items() if one is not None}
            starts[contract.topic] = {p: by_partition.get(p, last) for p, (_, last) in held.items()}
    return starts


def _newest_below(spark: "SparkSession", settings: "Settings", view: View, starts: Starts) -> datetime | None:
    """When the newest of the events below the offsets happened (UTC), by silver; None where there is none.

    Raises:
        Refused: silver has not come that far.
    """
    newest: list[datetime] = []
    for stream in view.streams:
        contract = CONTRACTS[stream]
        table, below = Tables.of(contract).log, starts[contract.topic]
        done = ledger.latest(settings, table)
        ends = {r.partition: r.end for r in done.ranges} if done else {}
        behind = [p for p, offset in below.items() if ends.get(p, 0) < offset]
        if behind:
            raise Refused(
                f"{table} has not reached these offsets in partition {behind[0]} yet, so which rows they belong to is not known. "
                f"Wait for the DAGs ingest and refine, or use a time, or {EARLIEST}."
            )
        parts = " OR ".join(f"(_partition = {p} AND _offset < {offset})" for p, offset in below.items())
        found = lake.read(spark, settings, table).where(parts).agg(F.max(F.expr(view.times[stream]))).collect()[0][0]
        if found is not None:
            newest.append(found.replace(tzinfo=UTC))
    return max(newest, default=None)


def _boundary(view: View, newest: datetime | None) -> datetime | None:
    """The first row that has nothing of an event at or before ``newest``; None where every row may be written."""
    if newest is None:
        return None
    return view.first_row_at(newest + view.lookback_time + MICROSECOND)


def _checked(settings: "Settings", view: View, starts: Starts, since: datetime | None) -> Reset:
    """The reset, if the rows before ``since``, which stay as they are, are final."""
    if since is None:
        return Reset(view.name, starts, None)
    if view.needs_all_history:
        raise Refused(
            f"{view.name}: its rows depend on all of history, so it can only be reset to {EARLIEST}, while its topics still hold "
            "their first records; else restore a savepoint."
        )
    final = live_final(settings, view)
    if final is None or since + view.overlap > final:
        until = f"before {final - view.overlap:%F %T} UTC" if final else "not at all yet"
        raise Refused(
            f"{view.name}: its rows are final {until}; a reset would keep those before {since:%F %T} UTC, some of them half "
            f"counted. Choose an earlier point, or {EARLIEST}."
        )
    return Reset(view.name, starts, since)
