"""The plan: which offsets are taken again and from where, which windows that touches, and what it will cost.

Read from the ledgers alone, and, for what bronze does not have, from the brokers' time index; no row is read, and Spark is
not needed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.ledger.ranges import Range, size, to_where
from lockstep.replay.request import Refused, Request, scope

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings

Span = tuple[datetime, datetime]


class Part(BaseModel):
    """What is taken again of one stream.

    Args:
        ranges: per partition; whole runs of ``refine`` where silver is computed again.
        arrived: between which arrivals (UTC) these runs lie, as far as the logs say.
        source: the table that they are read from.
        missing: what Kafka has of the interval that bronze does not have yet, by the brokers' time index.
        rows, size: of the runs, in rows and bytes as written.
    """

    model_config = ConfigDict(frozen=True)

    stream: str
    ranges: tuple[Range, ...]
    arrived: Span | None
    source: str
    missing: tuple[Range, ...] = ()
    rows: int = 0
    size: int = 0

    @property
    def where(self) -> str:
        """A SQL predicate for these rows in silver."""
        return to_where(self.ranges, "_partition", "_offset")


class Target(BaseModel):
    """What is put in the place of a view's rows: the windows that start (the instants that lie) in ``[low, high)`` (UTC).

    None: it follows from the rows, once they are read.
    """

    model_config = ConfigDict(frozen=True)

    view: str
    low: datetime | None = None
    high: datetime | None = None
    windows: int | None = None

    @property
    def span(self) -> Span | None:
        return (self.low, self.high) if self.low and self.high else None


class Plan(BaseModel):
    """A plan, as JSON in the record too.

    Args:
        layers: those that are computed again, upstream first.
        late: the views count rows however late they came.
        seconds: how long the shadow may take, by how long the last ones took; None when there was none yet.
    """

    model_config = ConfigDict(frozen=True)

    layers: tuple[str, ...]
    parts: tuple[Part, ...]
    targets: tuple[Target, ...]
    late: bool = False
    seconds: float | None = None

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True)
class Run:
    """One commit of a table: its ledger entry, and between which arrivals its rows lie, where its statistics say so."""

    entry: ledger.Entry
    first: datetime | None
    last: datetime | None
    size: int

    def overlaps(self, span: Span) -> bool:
        """Whether any of its rows may lie in the span."""
        return self.first is None or self.last is None or (self.first < span[1] and self.last >= span[0])


def plan(settings: "Settings", request: Request) -> Plan:
    """Resolve the request.

    Raises:
        Refused: offsets or versions that the ledger does not have.
    """
    found = scope(request)
    layers = tuple(layer for layer in ("bronze", "silver", "gold") if layer in request.layers)
    parts = tuple(part for name in found.streams if (part := _part(settings, request, CONTRACTS[name], layers)))
    targets = tuple(
        _target(request, VIEWS[name], parts) for name in found.views if ledger.latest(settings, gold_of(VIEWS[name]))
    )
    return Plan(layers=layers, parts=parts, targets=targets, late=request.late)


def runs(settings: "Settings", table: str, arrival: str) -> Iterator[Run]:
    """The table's runs that took offsets, newest first."""
    for commit in lake.commits(settings, table):
        if "ranges" in commit.record:
            entry = ledger.entry(commit)
            if any(r.size for r in entry.ranges):
                yield Run(entry, *arrivals(commit, arrival), commit.size)


def arrivals(commit: "Commit", column: str) -> tuple[datetime | None, datetime | None]:
    """The first and the last value of a timestamp column in the files that a commit added, by their statistics."""
    lows = [f.get("minValues", {}).get(column) for f in commit.files]
    highs = [f.get("maxValues", {}).get(column) for f in commit.files]
    if not lows or None in (*lows, *highs):
        return None, None
    # Delta cuts statistics to milliseconds.
    return _time(min(lows)), _time(max(highs)) + timedelta(milliseconds=1)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _part(settings: "Settings", request: Request, contract: Contract, layers: tuple[str, ...]) -> Part | None:
    tables = Tables.of(contract)
    source = (tables.log, "_arrival") if layers[0] == "gold" else (tables.bronze, "timestamp")
    aligned = list(runs(settings, tables.log, "_arrival")) if "silver" in layers else None
    found = list(runs(settings, *source))
    if request.start and request.end:
        span = arrival_span(request.start, request.end, contract, request)
        chosen = [run for run in (aligned if aligned is not None else found) if run.overlaps(span)]
        ranges = hull([run.entry for run in chosen], contract.topic)
    else:
        wanted = _wanted(settings, request, contract, [run.entry for run in found])
        chosen = [run for run in (aligned if aligned is not None else found) if touches(run.entry.ranges, wanted)]
        ranges = hull([run.entry for run in chosen], contract.topic) if aligned is not None else wanted
    missing = _missing(settings, request, contract) if "bronze" in layers else ()
    if not size(ranges) and not missing:
        return None
    read = [run for run in found if touches(run.entry.ranges, ranges)]
    times = [(run.first, run.last) for run in read if run.first and run.last]
    return Part(
        stream=contract.name,
        ranges=tuple(ranges),
        arrived=(min(t[0] for t in times), max(t[1] for t in times)) if times else None,
        source=source[0],
        missing=tuple(missing),
        rows=sum(run.entry.rows for run in read),
        size=sum(run.size for run in read),
    )


def arrival_span(start: datetime, end: datetime, contract: Contract, request: Request) -> Span:
    """Between which arrivals the rows lie that count in windows which start in ``[start, end)``, in any view of the request.

    A row may arrive before it happened by as much as the contract forgives, and after it by what the most patient view allows.
    """
    views = [VIEWS[name] for name in scope(request).views if contract.name in VIEWS[name].streams]
    reach = max((view.reach for view in views), default=timedelta(0))
    return start - contract.max_clock_skew, end + reach


def hull(entries: "list[ledger.Entry]", topic: str) -> list[Range]:
    """One range per partition from the first entry's start to the last one's end; a ledger's entries join without a gap."""
    by_partition: dict[int, list[Range]] = {}
    for entry in entries:
        for r in entry.ranges:
            if r.topic == topic:
                by_partition.setdefault(r.partition, []).append(r)
    return [
        Range(rs[0].topic, rs[0].topic_id, p, min(r.start for r in rs), max(r.end for r in rs))
        for p, rs in sorted(by_partition.items())
    ]


def touches(ranges: "tuple[Range, ...]", wanted: "tuple[Range, ...] | list[Range]") -> bool:
    """Whether any offset is in both."""
    spans = {r.partition: r for r in wanted if r.size}
    return any(
        r.size and r.partition in spans and r.start < spans[r.partition].end and r.end > spans[r.partition].start
        for r in ranges
    )


def _wanted(settings: "Settings", request: Request, contract: Contract, entries: "list[ledger.Entry]") -> list[Range]:
    """The ranges of a request by offsets or versions."""
    if request.versions:
        return _by_versions(settings, request, contract)
    position = {r.partition: r for r in hull(entries, contract.topic)}
    wanted = []
    for partition, (start, end) in sorted((request.offsets or {}).items()):
        held = position.get(partition)
        if held is None or start < held.start or end > held.end:
            has = f"[{held.start}, {held.end})" if held else "nothing"
            raise Refused(
                f"Offsets [{start}, {end}) of {contract.topic}-{partition} are out of range: its ledger has {has}. "
                "No row was read."
            )
        wanted.append(Range(contract.topic, held.topic_id, partition, start, end))
    return wanted


def _by_versions(settings: "Settings", request: Request, contract: Contract) -> list[Range]:
    layer, _, name = request.table.partition(".")
    table = Tables.of(contract).log if layer == "silver" else f"{layer}.{name}"
    first, last = request.version_range
    commits = list(lake.commits(settings, table))
    if not commits or last > commits[0].version:
        has = f"ends at version {commits[0].version}" if commits else "does not exist yet"
        raise Refused(f"There is no version {last} of {table}, which {has}. No row was read.")
    entries = [ledger.entry(c) for c in commits if first <= c.version <= last and "ranges" in c.record]
    return hull(entries, contract.topic)


def _missing(settings: "Settings", request: Request, contract: Contract) -> tuple[Range, ...]:
    """What Kafka has of the interval beyond bronze; nothing for offsets and versions, which bronze's ledger has."""
    if not (request.start and request.end):
        return ()
    from lockstep.replay.time_index import between

    done = ledger.latest(settings, Tables.of(contract).bronze)
    position = {r.partition: r.end for r in done.ranges} if done else {}
    span = arrival_span(request.start, request.end, contract, request)
    held = between(settings, contract.topic, *span)
    beyond = (
        Range(r.topic, r.topic_id, r.partition, max(r.start, position.get(r.partition, 0)), r.end)
        for r in held
        if r.end > position.get(r.partition, 0)
    )
    return tuple(r for r in beyond if r.size)


def _target(request: Request, view: View, parts: tuple[Part, ...]) -> Target:
    if not (request.start and request.end):
        return Target(view=view.name)
    low, high = request.start, request.end
    times = [part.arrived for part in parts if part.arrived and part.stream in view.streams]
    if not times:
        return Target(view=view.name, low=low, high=high)
    # Only where there are rows can there be windows.
    first = max(low, min(t[0] for t in times) - view.reach)
    last = min(high, max(t[1] for t in times) + timedelta(minutes=5))
    return Target(view=view.name, low=low, high=high, windows=view.windows_between(first, last))
