"""Gather the status without Spark: from the brokers, the logs of the tables, the control database and Airflow's API."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

import psycopg2
from kafka.errors import KafkaError

from lockstep import ledger
from lockstep.airflow_api import Airflow, AirflowRefused, connected
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.chained import made_from
from lockstep.definition.registry import broken, chosen
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.errors import LedgerBroken, LockstepError, UnknownView, ViewRefused
from lockstep.ingest.offsets import forbidden_topics, offsets_at, offsets_of_existing_topics
from lockstep.ingest.transactions import last_writes
from lockstep.ledger.ranges import TopicOffsets, ends
from lockstep.ledger.torn import torn_tables
from lockstep.live import generations, progress
from lockstep.live.frontier import live_position
from lockstep.live.generation import Generation
from lockstep.live.progress import Progress
from lockstep.marts import record
from lockstep.quality import outcomes
from lockstep.reconcile.record import last
from lockstep.schema_registry import RegistryDown, registry_of
from lockstep.serving.publish_results import unpublished_since
from lockstep.status import open_problems
from lockstep.status.captured import drifts
from lockstep.status.clocks import clocks_ahead
from lockstep.status.lag import PartitionLag, overdue, partition_lags, total
from lockstep.status.machine import certificates, disks
from lockstep.status.model import AirflowStatus, Problem, Status, Stream, Unpublished, ViewStatus
from lockstep.status.problems import problems

if TYPE_CHECKING:
    from lockstep.settings import Settings

Latest = Callable[[str], ledger.Entry | None]


def gather(settings: "Settings", health: Mapping[str, str]) -> Status:
    """Gather the status. A service that does not answer is one of its problems, and raises nothing.

    Args:
        health: by service, its state.
    """
    unreachable: list[Problem] = []
    status = Status([], [], broken=broken(), health=health, disks=disks(settings), torn=torn_tables(settings))
    views: list[View] = []
    try:
        views = chosen(settings.views)
    except (UnknownView, ViewRefused) as error:
        unreachable.append(Problem("definition:LOCKSTEP_VIEWS", str(error), "correct the setting LOCKSTEP_VIEWS"))
    try:
        status = replace(status, certificates=certificates(settings))
    except LockstepError as error:
        unreachable.append(Problem("unreachable:certificates", str(error), "correct the setting"))
    try:
        with connected(settings) as airflow:
            status = replace(status, airflow=_airflow(airflow))
    except AirflowRefused as error:
        unreachable.append(Problem("unreachable:airflow", str(error), "see `lockstep doctor`"))
    try:
        streams = gather_streams(settings, views)
        missing = sorted(CONTRACTS.keys() - {s.name for s in streams})
        hidden = forbidden_topics(settings, (CONTRACTS[name].topic for name in missing))
        forbidden = [name for name in missing if CONTRACTS[name].topic in hidden]
        without = [name for name in missing if name not in forbidden]
        ahead = clocks_ahead(settings, [CONTRACTS[s.name] for s in streams])
        status = replace(status, streams=streams, without_topic=without, forbidden=forbidden, clocks_ahead=ahead)
    except (LockstepError, KafkaError) as error:
        what = f"the broker did not list the offsets of the topics: {error}"
        unreachable.append(Problem("unreachable:kafka", what, "see `lockstep logs kafka`"))
    except psycopg2.OperationalError as error:
        unreachable.append(_no_database(error))
    with_records = {s.name for s in status.streams if s.log_end}
    status = replace(status, registry=_registry(settings), captured=drifts(settings, with_records))
    try:
        published = progress.latest(settings)
        states = [_view(settings, view, published.get(view.name)) for view in views]
        status = replace(status, unpublished=_unpublished(settings, views))
        verdicts, failed = outcomes.latest(settings).verdicts, record.failed(settings)
        status = replace(status, views=states, quality=verdicts, marts=failed)
    except psycopg2.OperationalError as error:
        unreachable.append(_no_database(error))
    return replace(
        status, problems=_since(open_problems.load(settings), unreachable + problems(status, datetime.now(UTC)))
    )


def _since(memory: open_problems.Memory, problems: Iterable[Problem]) -> list[Problem]:
    """The problems, each once, with when the monitor saw them first; and the notifiers that could not send their notices."""
    found = {problem.key: problem for problem in problems}
    for name, unsent in memory.unsent.items():
        if not unsent.error:
            # They are about to be sent.
            continue
        what = f"{len(unsent.notices)} notices could not be sent by the notifier {name}: {unsent.error}"
        found[f"notifier:{name}"] = Problem(
            f"notifier:{name}", what, "correct the setting notifiers, or its connection"
        )
    return [
        replace(p, since=memory.open[key].problem.since) if p.since is None and key in memory.open else p
        for key, p in found.items()
    ]


def _registry(settings: "Settings") -> str:
    registry = registry_of(settings)
    if registry is None or not any(contract.by_registry for contract in CONTRACTS.values()):
        return ""
    try:
        registry.check()
    except RegistryDown as error:
        return str(error)
    return ""


def _no_database(error: psycopg2.OperationalError) -> Problem:
    what = f"the control database does not answer, so lag, verdicts and gates are not known: {error}".strip()
    return Problem("unreachable:postgres", what, "see `lockstep logs postgres`")


def _airflow(airflow: Airflow) -> AirflowStatus:
    dags = airflow.dags()
    errors = {file: trace.strip().rpartition("\n")[2] for file, trace in airflow.import_errors().items()}
    return AirflowStatus(dags, airflow.last_runs(dags), errors)


def gather_streams(
    settings: "Settings", views: Sequence[View], contracts: Collection[Contract] = CONTRACTS.values()
) -> list[Stream]:
    """The status of every stream whose topic exists, in each layer of these views."""
    topics = offsets_of_existing_topics(settings, [c.topic for c in contracts])
    contracts = [c for c in contracts if c.topic in topics]
    current = generations.all_current(settings) if topics else {}
    written_at = last_writes(settings, topics.values())
    max_lag = {c.name: _max_lag(settings, c, views) for c in contracts}
    partitions = [(t.topic, p) for t in topics.values() for p in t.partitions]
    now = datetime.now(UTC)
    limits = {limit for by_layer in max_lag.values() for limit in by_layer.values()}
    at = {limit: offsets_at(settings, partitions, now - limit) for limit in limits}
    # A view may read several streams.
    latest: Latest = cache(partial(_latest, settings))
    streams = []
    for contract in contracts:
        topic = topics[contract.topic]
        position = _positions(settings, latest, contract, topic, views, current)
        lags = partition_lags(topic, position, written_at)
        streams.append(_stream(latest, contract, lags, overdue(topic.topic, lags, max_lag[contract.name], at)))
    return streams


def _latest(settings: "Settings", table: str) -> ledger.Entry | None:
    try:
        return ledger.latest(settings, table)
    except LedgerBroken:
        # That its log is torn is a problem of its own.
        return None


def _max_lag(settings: "Settings", contract: Contract, views: Iterable[View]) -> dict[str, timedelta]:
    """By layer of the stream, how old a record may become before the layer has read it."""
    default = timedelta(seconds=settings.max_lag_seconds)
    limits = dict.fromkeys(("bronze", "silver"), contract.max_lag or default)
    return limits | {table: view.max_lag or default for view in views for table in (gold_of(view), live_of(view))}


def _positions(
    settings: "Settings",
    latest: Latest,
    contract: Contract,
    topic: TopicOffsets,
    views: Iterable[View],
    current: Mapping[str, Generation],
) -> dict[str, dict[int, int]]:
    """By layer, the next offset of each partition."""
    tables = Tables.of(contract)
    position = {"bronze": _ends(latest(tables.bronze), topic), "silver": _ends(latest(tables.log), topic)}
    for view in views:
        if contract.name in view.streams:
            position[gold_of(view)] = _ends(latest(gold_of(view)), topic)
            generation = current.get(view.name, Generation(view.name))
            position[live_of(view)] = live_position(generation.location(settings), contract.topic)
    return position


def _stream(latest: Latest, contract: Contract, partitions: list[PartitionLag], overdue: Mapping[str, int]) -> Stream:
    tables = Tables.of(contract)
    bronze, silver = latest(tables.bronze), latest(tables.log)
    counts = silver.totals if silver else {}
    return Stream(
        name=contract.name,
        topic=contract.topic,
        log_end=sum(p.end for p in partitions),
        bronze=bronze.totals.get("rows", 0) if bronze else 0,
        unknown={name: rows for name, rows in silver.unknown.items() if name not in contract.columns} if silver else {},
        lag=total(partitions),
        partitions=partitions,
        overdue=overdue,
        fresh_at=bronze.committed_at if bronze else None,
        newest=_newest(silver, partitions) if contract.kind == "events" else {},
        **{name: counts.get(name, 0) for name in ("silver", "duplicates", "quarantined", "markers", "erased")},
    )


def _newest(silver: ledger.Entry | None, partitions: Iterable[PartitionLag]) -> dict[int, datetime | None]:
    """The newest timestamps of the partitions that silver has read to their ends."""
    stamps = silver.newest if silver else {}
    read = (p.partition for p in partitions if not p.lag.get("silver"))
    return {p: datetime.fromtimestamp(stamps[p] / 1000, UTC) if p in stamps else None for p in read}


def _ends(entry: ledger.Entry | None, topic: TopicOffsets) -> dict[int, int]:
    return ends(r for r in entry.ranges if r.topic == topic.topic) if entry else {}


def _unpublished(settings: "Settings", views: Sequence[View]) -> list[Unpublished]:
    now, found = datetime.now(UTC), []
    for name, since in unpublished_since(settings, CONTRACTS.values()).items():
        contract = CONTRACTS[name]
        if now - since > (contract.max_lag or timedelta(seconds=settings.max_lag_seconds)):
            readers = [view.name for view in views if name in view.streams]
            found.append(Unpublished(contract.view, name, readers, since))
    return found


def _view(settings: "Settings", view: View, live: Progress | None) -> ViewStatus:
    gold = _latest(settings, gold_of(view))
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
        recent=gold.counts if gold else {},
        live=live,
        made_from=made_from(view),
    )
