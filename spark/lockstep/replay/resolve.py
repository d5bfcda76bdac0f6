"""Turn a request into a plan: which offsets are read again and from where, which windows they touch, and how many rows that is.

A plan is read from the ledgers, and, for rows that bronze lacks, from the brokers' time index. No row is read, and no Spark
server is needed.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import Interval
from lockstep.ledger import history
from lockstep.ledger.ranges import Range, size
from lockstep.replay.missing import ranges_missing
from lockstep.replay.parse import scope
from lockstep.replay.plan import Part, Plan, Target
from lockstep.replay.request import LAYERS, Layer, ReplayRefused, Request
from lockstep.replay.runs import hull, runs_between, runs_of

if TYPE_CHECKING:
    from lockstep.settings import Settings


def resolve(settings: "Settings", request: Request) -> Plan:
    """Resolve the request.

    Raises:
        ReplayRefused: the ledger does not have the offsets or versions.
    """
    names = scope(request)
    layers = tuple(layer for layer in LAYERS if layer in request.layers)
    parts = tuple(part for name in names.streams if (part := _part(settings, request, CONTRACTS[name], layers)))
    targets = tuple(
        _target(request, VIEWS[name], parts) for name in names.views if ledger.latest(settings, gold_of(VIEWS[name]))
    )
    return Plan(layers=layers, parts=parts, targets=targets, late=request.late)


def arrival_span(request: Request, contract: Contract, start: datetime, end: datetime) -> Interval:
    """The arrivals of all rows that count in windows which start in ``[start, end)``, in any view of the request.

    The timestamp of a row may be before its event time by ``max_clock_skew``, and after it by the longest lateness of the views.
    """
    views = [VIEWS[name] for name in scope(request).views if contract.name in VIEWS[name].streams]
    reach = max((view.reach for view in views), default=timedelta(0))
    return start - contract.max_clock_skew, end + reach


def _part(settings: "Settings", request: Request, contract: Contract, layers: tuple[Layer, ...]) -> Part | None:
    tables = Tables.of(contract)
    source, arrival = (tables.log, "_arrival") if layers[0] == "gold" else (tables.bronze, "timestamp")
    if request.start and request.end:
        span = arrival_span(request, contract, request.start, request.end)
        ranges = hull((run.entry for run in runs_between(settings, source, arrival, span)), contract.topic)
    else:
        ranges = _asked(settings, request, contract, source)
    if "silver" in layers:
        # In whole runs of refine, because they decide what is a duplicate. Bronze knows which: rows that a run has put aside, or
        # that were duplicates, are in it alone.
        ranges = hull((run.entry for run in runs_of(settings, tables.log, "_arrival", ranges)), contract.topic)
    missing = _missing(settings, request, contract) if "bronze" in layers else ()
    if not size(ranges) and not missing:
        return None
    read = runs_of(settings, source, arrival, ranges)
    times = [(run.first, run.last) for run in read if run.first and run.last]
    return Part(
        stream=contract.name,
        ranges=tuple(ranges),
        arrived=(min(t[0] for t in times), max(t[1] for t in times)) if times else None,
        source=source,
        missing=missing,
        rows=sum(run.entry.rows for run in read),
        size=sum(run.size for run in read),
    )


def _asked(settings: "Settings", request: Request, contract: Contract, source: str) -> list[Range]:
    """The ranges of a request by offsets or versions."""
    if request.versions:
        return _by_versions(settings, request, contract)
    position = {r.partition: r for r in history.position(settings, source)}
    asked = []
    for partition, (start, end) in sorted((request.offsets or {}).items()):
        present = position.get(partition)
        if present is None or start < present.start or end > present.end:
            has = f"[{present.start}, {present.end})" if present else "nothing"
            raise ReplayRefused(
                f"Offsets [{start}, {end}) of {contract.topic}-{partition} are out of range: its ledger has {has}. "
                "No row was read."
            )
        asked.append(Range(contract.topic, present.topic_id, partition, start, end))
    return asked


def _by_versions(settings: "Settings", request: Request, contract: Contract) -> list[Range]:
    layer, _, name = request.table.partition(".")
    table = Tables.of(contract).log if layer == "silver" else f"{layer}.{name}"
    first, last = request.version_range
    newest = next(lake.commits(settings, table), None)
    if newest is None or last > newest.version:
        has = f"ends at version {newest.version}" if newest else "does not exist yet"
        raise ReplayRefused(f"There is no version {last} of {table}, which {has}. No row was read.")
    commits = history.recorded(settings, table, f"version BETWEEN {first} AND {last}")
    return hull((ledger.entry(c) for c in commits if first <= c.version <= last), contract.topic)


def _missing(settings: "Settings", request: Request, contract: Contract) -> tuple[Range, ...]:
    """What bronze lacks of the interval. A request by offsets or versions asks only for what bronze's ledger has."""
    if not (request.start and request.end):
        return ()
    return ranges_missing(settings, contract, *arrival_span(request, contract, request.start, request.end))


def _target(request: Request, view: View, parts: tuple[Part, ...]) -> Target:
    if not (request.start and request.end):
        return Target(view=view.name)
    low, high = request.start, request.end
    # A window without rows is not in gold, so only the windows around the rows are counted. A row may be older than its
    # arrival by the reach of the view, and younger by the clock skew that its contract allows.
    events = [
        (part.arrived[0] - view.reach, part.arrived[1] + CONTRACTS[part.stream].max_clock_skew)
        for part in parts
        if part.arrived and part.stream in view.streams
    ]
    if not events:
        return Target(view=view.name, low=low, high=high)
    first = max(low, min(e[0] for e in events))
    last = min(high, max(e[1] for e in events))
    return Target(view=view.name, low=low, high=high, windows=view.windows_between(first, last))
