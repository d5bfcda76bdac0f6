"""*Is it all right?* Everything an operator asks first, gathered without Spark: from the brokers, the logs and Airflow."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.contracts import CONTRACTS, Contract
from lockstep.ingest import ledger
from lockstep.ingest.offsets import all_bounds
from lockstep.ingest.ranges import Bounds
from lockstep.lake import checkpoint
from lockstep.reconcile.frontier import live_position
from lockstep.reconcile.run import last
from lockstep.refine.tables import Tables
from lockstep.views import VIEWS

if TYPE_CHECKING:
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Stream:
    """One stream's way through the layers, in rows, offsets of lag, and seconds.

    Args:
        lag: offsets that the topic holds beyond each layer: ``bronze``, ``silver``, and ``gold`` and ``live`` per view.
        fresh_at: milliseconds (UTC) of the newest bronze commit, None before the first.
    """

    name: str
    topic: str
    log_end: int
    bronze: int = 0
    silver: int = 0
    duplicates: int = 0
    quarantined: int = 0
    control: int = 0
    lag: Mapping[str, int] = field(default_factory=dict)
    fresh_at: int | None = None

    @property
    def adds_up(self) -> bool:
        """Whether every row of bronze that silver has seen is accounted for."""
        accounted = self.silver + self.duplicates + self.quarantined + self.control
        return accounted == self.bronze or self.lag.get("silver", 0) > self.lag.get("bronze", 0)


@dataclass(frozen=True)
class ViewStatus:
    """One view: its sums, how far both layers agree, and what does not."""

    name: str
    counted: int
    ignored: int
    side: int
    until: str | None
    windows: int
    unexplained: int
    sample: str | None

    @property
    def verdict(self) -> str:
        if self.until is None:
            return "nothing compared yet"
        return "equal" if self.unexplained == 0 else "unexplained"


@dataclass(frozen=True)
class Status:
    """The one screen. ``health`` is by part, ``runs`` by DAG (the last run's state and end), ``quality`` by table."""

    streams: list[Stream]
    views: list[ViewStatus]
    health: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        streams = [asdict(s) | {"adds_up": s.adds_up} for s in self.streams]
        views = [asdict(v) | {"verdict": v.verdict} for v in self.views]
        return {"ok": self.ok} | asdict(self) | {"streams": streams, "views": views}


def gather(settings: "Settings", health: Mapping[str, str], runs: Mapping[str, str]) -> Status:
    """Ask the brokers and read the ledgers. ``health`` and ``runs`` are given, because others know them.

    A broker that does not answer is a problem on the screen, never an error of it.
    """
    topics = all_bounds(settings, [c.topic for c in CONTRACTS.values()])
    streams = [_stream(settings, contract, topics[contract.topic]) for contract in CONTRACTS.values()]
    views = [_view(settings, name) for name in VIEWS]
    return Status(streams, views, health, runs, problems(streams, views, health, runs))


def problems(
    streams: list[Stream], views: list[ViewStatus], health: Mapping[str, str], runs: Mapping[str, str]
) -> list[str]:
    """What is not all right, one sentence each. Pure."""
    return [
        *(f"{part} is {state}: see `lockstep logs {part}`" for part, state in health.items() if state != "healthy"),
        *(f"{s.name}: the rows of bronze and silver do not add up" for s in streams if not s.adds_up),
        *(f"{v.name}: {v.unexplained} windows differ, such as {v.sample}" for v in views if v.unexplained),
        *(f"DAG {dag}: its last run {state}" for dag, state in runs.items() if state.startswith("failed")),
    ]


def _stream(settings: "Settings", contract: Contract, topic: Bounds) -> Stream:
    tables = Tables.of(contract)
    bronze, silver = ledger.latest(settings, tables.bronze), ledger.latest(settings, tables.log)
    lag = {"bronze": lag_of(topic, bronze), "silver": lag_of(topic, silver)}
    for view in VIEWS.values():
        if view.input == contract.name:
            lag[f"gold.{view.name}"] = lag_of(topic, ledger.latest(settings, f"gold.{view.name}"))
            position = live_position(checkpoint(settings, view.name, ledger.GENERATION), contract.topic)
            lag[f"live.{view.name}"] = _behind(topic, position)
    counts = silver.totals if silver else {}
    return Stream(
        name=contract.name,
        topic=contract.topic,
        log_end=sum(last for _, last in topic.partitions.values()),
        bronze=bronze.totals.get("rows", 0) if bronze else 0,
        lag=lag,
        fresh_at=bronze.committed_at if bronze else None,
        **{name: counts.get(name, 0) for name in ("silver", "duplicates", "quarantined", "control")},
    )


def lag_of(topic: Bounds, entry: ledger.Entry | None) -> int:
    """Offsets that the topic holds beyond a ledger's position."""
    return _behind(topic, {r.partition: r.end for r in entry.ranges} if entry else {})


def _behind(topic: Bounds, position: Mapping[int, int]) -> int:
    return sum(last - position.get(p, first) for p, (first, last) in topic.partitions.items())


def _view(settings: "Settings", name: str) -> ViewStatus:
    gold = ledger.latest(settings, f"gold.{name}")
    record = last(settings, VIEWS[name])
    totals = gold.totals if gold else {}
    return ViewStatus(
        name=name,
        counted=totals.get("counted", 0),
        ignored=totals.get("ignored", 0),
        side=totals.get("side", 0),
        until=record.get("until"),
        windows=record.get("windows", 0),
        unexplained=record.get("unexplained", 0),
        sample=record.get("sample"),
    )


def age(milliseconds: int | None) -> str:
    """How long ago that was, in words."""
    if milliseconds is None:
        return "never"
    seconds = int(datetime.now(UTC).timestamp() - milliseconds / 1000)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{max(seconds, 0)} s ago"
