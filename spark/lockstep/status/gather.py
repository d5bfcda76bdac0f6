"""Gather the status without Spark: from the brokers, the logs of the tables, the control database and Airflow's API."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import psycopg2
from kafka.errors import KafkaError

from lockstep import ledger
from lockstep.airflow_api import AirflowRefused, Run, connected
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.errors import LockstepError
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.ingest.transactions import last_writes
from lockstep.ledger.ranges import TopicOffsets, ends
from lockstep.live import generations
from lockstep.live.frontier import live_position
from lockstep.quality import outcomes
from lockstep.quality.outcomes import GateVerdict
from lockstep.reconcile.record import last
from lockstep.status.lag import partition_lags, total
from lockstep.status.model import HEALTHY, Status, Stream, ViewStatus

if TYPE_CHECKING:
    from lockstep.settings import Settings

# transaction.max.timeout.ms of a broker is 15 minutes: then it ends a transaction of which it knows.
_LONGEST_TRANSACTION = timedelta(minutes=15)


def gather(settings: "Settings", health: Mapping[str, str]) -> Status:
    """Gather the status. A service that does not answer is one of its problems, and raises nothing.

    Args:
        health: by service, its state.
    """
    unreachable: list[str] = []
    runs: dict[str, Run] = {}
    streams: list[Stream] = []
    views: list[ViewStatus] = []
    quality: Mapping[str, GateVerdict] = {}
    try:
        with connected(settings) as airflow:
            runs = airflow.last_runs()
    except AirflowRefused as error:
        unreachable.append(str(error))
    try:
        streams = gather_streams(settings)
    except (LockstepError, KafkaError) as error:
        unreachable.append(f"the broker did not list the offsets of the topics: {error}")
    except psycopg2.OperationalError as error:
        unreachable.append(f"the control database does not answer: {error}")
    try:
        views = [_view(settings, view) for view in chosen(settings.views)]
        quality = outcomes.latest(settings).verdicts
    except psycopg2.OperationalError as error:
        unreachable.append(f"the control database does not answer, so neither verdicts nor gates are known: {error}")
    return Status(streams, views, health, runs, quality, unreachable + problems(streams, views, health, runs, quality))


def gather_streams(settings: "Settings") -> list[Stream]:
    """The status of every stream whose topic exists."""
    topics = offsets_of_existing_topics(settings, [c.topic for c in CONTRACTS.values()])
    views = chosen(settings.views)
    current = generations.all_current(settings) if topics else {}
    written_at = last_writes(settings, topics.values())
    return [
        _stream(settings, c, topics[c.topic], views, current, written_at)
        for c in CONTRACTS.values()
        if c.topic in topics
    ]


def problems(
    streams: list[Stream],
    views: list[ViewStatus],
    health: Mapping[str, str],
    runs: Mapping[str, Run],
    quality: Mapping[str, GateVerdict],
) -> list[str]:
    """One sentence for each thing that is not all right."""
    return [
        *(f"{name} is {state}: see `lockstep logs {name}`" for name, state in health.items() if state != HEALTHY),
        *(f"{s.name}: the rows of bronze and silver do not add up" for s in streams if not s.adds_up),
        *(f"{s.name}: {problem}" for s in streams for problem in _hanging(s, datetime.now(UTC))),
        *(f"{v.name}: {v.unexplained} windows differ, such as {v.sample}" for v in views if v.unexplained),
        *(f"DAG {dag}: its last run {run}" for dag, run in runs.items() if run.failed),
        *(f"the gate of {table} is shut: {verdict}" for table, verdict in quality.items() if not verdict.success),
    ]


def _hanging(stream: Stream, now: datetime) -> Iterator[str]:
    for p in stream.partitions:
        if p.waiting and p.written_at and now - p.written_at > _LONGEST_TRANSACTION:
            yield (
                f"{p.waiting:,} records of {stream.topic}-{p.partition} wait behind a transaction that is open since "
                f"{p.written_at:%F %T} or longer: see `kafka-transactions find-hanging`"
            )


def _stream(
    settings: "Settings",
    contract: Contract,
    topic: TopicOffsets,
    views: list[View],
    current: Mapping[str, generations.Generation],
    written_at: Mapping[tuple[str, int], datetime],
) -> Stream:
    tables = Tables.of(contract)
    bronze, silver = ledger.latest(settings, tables.bronze), ledger.latest(settings, tables.log)
    position = {"bronze": _ends(bronze, topic), "silver": _ends(silver, topic)}
    for view in views:
        if contract.name in view.streams:
            position[gold_of(view)] = _ends(ledger.latest(settings, gold_of(view)), topic)
            generation = current.get(view.name, generations.Generation(view.name))
            position[live_of(view)] = live_position(generation.location(settings), contract.topic)
    partitions = partition_lags(topic, position, written_at)
    counts = silver.totals if silver else {}
    return Stream(
        name=contract.name,
        topic=contract.topic,
        log_end=sum(topic.end(p) for p in topic.partitions),
        bronze=bronze.totals.get("rows", 0) if bronze else 0,
        unknown={name: rows for name, rows in silver.unknown.items() if name not in contract.columns} if silver else {},
        lag=total(partitions),
        partitions=partitions,
        fresh_at=bronze.committed_at if bronze else None,
        **{name: counts.get(name, 0) for name in ("silver", "duplicates", "quarantined", "markers")},
    )


def _ends(entry: ledger.Entry | None, topic: TopicOffsets) -> dict[int, int]:
    return ends(r for r in entry.ranges if r.topic == topic.topic) if entry else {}


def _view(settings: "Settings", view: View) -> ViewStatus:
    gold = ledger.latest(settings, gold_of(view))
    reconciled = last(settings, view)
    totals = gold.totals if gold else {}
    return ViewStatus(
        name=view.name,
        counted=totals.get("counted", 0),
        ignored=totals.get("ignored", 0),
        side_output=totals.get("side_output", 0),
        until=reconciled.until.isoformat() if reconciled else None,
        windows=reconciled.windows if reconciled else 0,
        unexplained=reconciled.unexplained if reconciled else 0,
        sample=reconciled.sample if reconciled else None,
    )
