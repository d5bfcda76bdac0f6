"""Reconciliation in the simulation: the real decisions about which windows are compared and settled, and what must hold of them.

Restated here is what Spark does: the comparison of two tables by key. No cause of a difference is looked for, so that each one is
unexplained.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from tests.support.simulation import oracle
from tests.support.simulation.invariants import CELLS, behind, cells, check, differing
from tests.support.simulation.lake import Row, Rows
from tests.support.simulation.streams import HOPPING, PER_WINDOW, VIEWS, WINDOWED
from tests.support.simulation.world import World

from lockstep.definition import View
from lockstep.definition.tables import gold_of, live_of
from lockstep.definition.view import BEGINNING
from lockstep.live.frontier import batch_final, live_final
from lockstep.reconcile.difference import Difference, Kind, Side
from lockstep.reconcile.record import last
from lockstep.reconcile.report import Report
from lockstep.reconcile.run import reconcile
from lockstep.reconcile.verdict import Verdict

SAYS_EQUAL = "reconciliation says equal only where both layers have what the log says"
CLOSED = "reconciliation compares what both layers have closed"
SAYS_DIFFERENT = "reconciliation names no difference where there is none"
FINDS = "reconciliation finds a row that is gone, until it is back"
_TIME = pa.timestamp("us", tz="UTC")
_SIZE = {PER_WINDOW.name: PER_WINDOW.size, HOPPING.name: HOPPING.size}


class Notify:
    """As the module :mod:`lockstep.reconcile.notify`: nobody is told."""

    @staticmethod
    def publish_corrections(*_: Any) -> int:
        """None is sent."""
        return 0

    @staticmethod
    def publish_alert(*_: Any) -> None:
        """None is sent."""


def by_window(live: Rows, batch: Rows, view: View) -> pa.Table:
    """As :func:`lockstep.reconcile.compare.by_window`."""
    _, length = view.comparison_window
    counts: dict[datetime, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(("keys", *Kind), 0) | {"sample": None})
    for key, (start, kind, *_rows) in _pairs(live, batch, view).items():
        window = counts[start]
        window["keys"] += 1
        window[kind] += 1
        window["sample"] = window["sample"] or (None if kind is Kind.EQUAL else str(key))
    fields = [("window_start", _TIME), ("window_end", _TIME), ("keys", pa.int64())]
    schema = pa.schema([*fields, *((kind.value, pa.int64()) for kind in Kind), ("sample", pa.string())])
    rows = [{"window_start": start, "window_end": start + length, **of} for start, of in sorted(counts.items())]
    return pa.Table.from_pylist(rows, schema)


def attributed(_spark: Any, _world: World, view: View, rows: Any, _extent: Any) -> Iterable[list[Difference]]:
    """As ``lockstep.reconcile.run._attributed``, where no cause is found."""
    found = [
        Difference(
            start, str(key), kind, *(Side(str(of[0]) if of else None, len(of) > 1).wrong() for of in (live, batch))
        )
        for key, (start, kind, live, batch) in _pairs(rows.live, rows.batch, view).items()
        if kind is not Kind.EQUAL
    ]
    return [found] if found else []


def _pairs(live: Rows, batch: Rows, view: View) -> Mapping[Any, tuple[datetime, Kind, list[Any], list[Any]]]:
    """By key: its window, how the layers compare, and the values of each."""
    ignored = {*view.key, *(("at",) if view.upserts else ())}
    values = [name for name in view.output_columns if name not in ignored]
    sides: dict[Any, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    starts: dict[Any, datetime] = {}
    for number, rows in enumerate((live, batch)):
        for row in rows:
            key = tuple(row[name] for name in view.key)
            sides[key][number].append(tuple(row[name] for name in values))
            starts[key] = _window(view, row)
    return {key: (starts[key], _kind(*of), *of) for key, of in sides.items()}


def _window(view: View, row: Row) -> datetime:
    at: datetime = row[view.time_column]
    return at if view in WINDOWED else at.replace(second=0, microsecond=0)


def _kind(live: list[Any], batch: list[Any]) -> Kind:
    if len(live) > 1 or len(batch) > 1:
        return Kind.DOUBLED
    if not batch:
        return Kind.ONLY_LIVE
    if not live:
        return Kind.ONLY_BATCH
    return Kind.EQUAL if live == batch else Kind.CHANGED


def check_report(world: World, view: View, report: Report) -> None:
    """What a reconciliation says, against the rows of both layers, and of a view of windows against the log."""
    if report.until is None:
        return
    until, closed = report.until, view.closed(BEGINNING, report.until)
    finals = (batch_final(world, view), live_final(world, view))
    is_closed = view.upserts or all(final is not None and until <= final for final in finals)
    check(is_closed, CLOSED, f"{view.name} before {until}, and gold and live are final before {finals}")
    live, gold = (cells(view, world.rows(t).where(closed), SAYS_EQUAL) for t in (live_of(view), gold_of(view)))
    wrong = differing(live, gold)
    if report.verdict is not Verdict.EQUAL:
        check(bool(wrong), SAYS_DIFFERENT, f"{view.name} before {until}: {report.sample}")
        return
    check(not wrong, SAYS_EQUAL, f"{view.name} before {until}: {wrong}")
    if view in WINDOWED:
        expected = oracle.expected(oracle.judged(world.kafka))[view.name]
        open_ = {key for key in expected if key[0] + _SIZE[view.name] > until} | behind(world, view).keys()
        wrong = differing(*({k: v for k, v in of.items() if k not in open_} for of in (gold, expected)))
        check(not wrong, SAYS_EQUAL, f"{view.name} before {until}, gold and the log: {wrong}")


def check_at_the_end(world: World, run_id: str) -> None:
    """All is closed and equal; a row that somebody removes is named by every run until it is back."""
    for view in VIEWS.values():
        report = _reconcile(world, view, run_id)
        check(report.verdict is Verdict.EQUAL, SAYS_DIFFERENT, f"{view.name}: {report.sample}")
        check_report(world, view, report)
        settled = last(world, view)
        if settled is None:
            continue
        for table in (live_of(view), gold_of(view)):
            rows = world.rows(table).where(view.closed(BEGINNING, settled.until))
            if rows:
                _check_that_it_is_missed(world, view, table, world.random.choice(rows), run_id)


def _check_that_it_is_missed(world: World, view: View, table: str, row: Row, run_id: str) -> None:
    key = CELLS[view.name](row)[0]
    world.say(f"somebody removes {key} from {table}")
    world.lake.spoil(table, lambda before: [other for other in before if other is not row])
    for again_since in (BEGINNING, None):
        report = _reconcile(world, view, run_id, again_since)
        check(report.verdict is Verdict.UNEXPLAINED, FINDS, f"{table} lacks {key}, and {view.name} is {report.verdict}")
    world.lake.spoil(table, lambda before: [*before, row])
    report = _reconcile(world, view, run_id)
    check(report.verdict is Verdict.EQUAL and report.windows > 0, FINDS, f"{table} has {key} again: {report.sample}")


def _reconcile(world: World, view: View, run_id: str, again_since: datetime | None = None) -> Report:
    return reconcile(None, world, view, run_id, again_since)  # type: ignore[arg-type]
