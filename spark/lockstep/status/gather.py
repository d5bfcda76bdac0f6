"""Gather the status without Spark: from the supervisor, the brokers, the tables' logs and Airflow's API."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import psycopg2
from kafka.errors import KafkaError

from lockstep import ledger
from lockstep.airflow_api import AirflowRefused, connected
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.definition.tables import Tables, gold_of
from lockstep.errors import LockstepError
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.ledger.ranges import TopicOffsets, ends
from lockstep.live import generations
from lockstep.live.frontier import live_position
from lockstep.quality import outcomes
from lockstep.reconcile.record import last
from lockstep.status.lag import partition_lags, total
from lockstep.status.model import Status, Stream, ViewStatus

if TYPE_CHECKING:
    from lockstep.settings import Settings
    from lockstep.stack.stack import Stack


def gather(settings: "Settings", stack: "Stack") -> Status:
    """Look at everything that can be reached; a part that does not answer is a problem on the screen, not an error of it."""
    health = {name: h.state for name, h in stack.health().items()}
    trouble: list[str] = []
    runs: dict[str, str] = {}
    streams: list[Stream] = []
    try:
        with connected(settings) as airflow:
            runs = {dag: str(run) for dag, run in airflow.last_runs().items()}
    except AirflowRefused as error:
        trouble.append(str(error))
    try:
        streams = gather_streams(settings)
    except (LockstepError, KafkaError) as error:
        trouble.append(f"the broker cannot say what its topics hold: {error}")
    except psycopg2.OperationalError as error:
        trouble.append(f"the control database does not answer: {error}")
    views = [_view(settings, view) for view in chosen(settings.views)]
    quality = outcomes.summary(settings)
    return Status(streams, views, health, runs, quality, trouble + problems(streams, views, health, runs, quality))


def gather_streams(settings: "Settings") -> list[Stream]:
    """Every stream whose topic exists."""
    topics = offsets_of_existing_topics(settings, [c.topic for c in CONTRACTS.values()])
    return [_stream(settings, c, topics[c.topic]) for c in CONTRACTS.values() if c.topic in topics]


def problems(
    streams: list[Stream],
    views: list[ViewStatus],
    health: Mapping[str, str],
    runs: Mapping[str, str],
    quality: Mapping[str, str],
) -> list[str]:
    """What is not all right, one sentence each. Pure."""
    return [
        *(f"{part} is {state}: see `lockstep logs {part}`" for part, state in health.items() if state != "healthy"),
        *(f"{s.name}: the rows of bronze and silver do not add up" for s in streams if not s.adds_up),
        *(f"{v.name}: {v.unexplained} windows differ, such as {v.sample}" for v in views if v.unexplained),
        *(f"DAG {dag}: its last run {state}" for dag, state in runs.items() if state.startswith("failed")),
        *(f"the gate of {table} is shut: {found}" for table, found in quality.items() if found.startswith("FAILED")),
    ]


def _stream(settings: "Settings", contract: Contract, topic: TopicOffsets) -> Stream:
    tables = Tables.of(contract)
    bronze, silver = ledger.latest(settings, tables.bronze), ledger.latest(settings, tables.log)
    position = {"bronze": _ends(bronze, topic), "silver": _ends(silver, topic)}
    for view in chosen(settings.views):
        if contract.name in view.streams:
            position[f"gold.{view.name}"] = _ends(ledger.latest(settings, f"gold.{view.name}"), topic)
            place = generations.get(settings, view.name).location(settings)
            position[f"live.{view.name}"] = live_position(place, contract.topic)
    partitions = partition_lags(topic, position)
    counts = silver.totals if silver else {}
    return Stream(
        name=contract.name,
        topic=contract.topic,
        log_end=sum(last for _, last in topic.partitions.values()),
        bronze=bronze.totals.get("rows", 0) if bronze else 0,
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
