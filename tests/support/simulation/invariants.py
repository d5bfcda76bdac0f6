"""What must hold, during a run and at its end."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests.support.simulation import oracle
from tests.support.simulation.kafka import Form, Place
from tests.support.simulation.lake import Row, Rows
from tests.support.simulation.oracle import Judged
from tests.support.simulation.streams import CONTRACTS, VIEWS, WINDOWED
from tests.support.simulation.world import Broken, World

from lockstep import ledger
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.definition.view import BEGINNING
from lockstep.ledger.chain import problems
from lockstep.live.frontier import batch_final, live_final

BRONZE = "each committed record is in bronze once"
CHAIN = "the ledger has no gap and no overlap"
SUMS = "the sums add up"
OUTCOMES = "silver, duplicates and quarantine are what the log says"
AGREE = "closed rows are the same in both layers"
FINAL = "final rows do not change"
GOLD = "gold is what the log says"
LIVE = "live is what the log says"
AGAIN = "running a step again changes nothing"
ORDERLY = "where clocks agree, no record is behind its watermark"
Cells = dict[Any, Any]


def check(holds: bool, invariant: str, detail: str) -> None:
    """Raise if it does not hold."""
    if not holds:
        raise Broken(invariant, detail)


def check_tables(world: World) -> None:
    """Bronze, silver and the ledgers against the log."""
    records = oracle.judged(world.kafka)
    for contract in CONTRACTS.values():
        tables = Tables.of(contract)
        mine = [r for r in records if r.place[0] == contract.topic]
        _check_same(BRONZE, tables.bronze, {(*r.place, r.offset) for r in mine}, world.rows(tables.bronze), _in_bronze)
        for outcome, table in ((oracle.SILVER, tables.log), (oracle.QUARANTINED, tables.quarantine)):
            places = {(*r.place, r.offset) for r in mine if r.outcome == outcome}
            _check_same(OUTCOMES, table, places, world.rows(table), _in_silver)
        newest = ledger.latest(world, tables.log)
        totals = dict(newest.totals) if newest else {}
        by_outcome = {name: sum(r.outcome == name for r in mine) for name in totals}
        check(totals == by_outcome, SUMS, f"{tables.log} has {totals}, the log {by_outcome}")
        check_chain(world, tables.bronze)
        check_chain(world, tables.log)
    for view in VIEWS.values():
        check_chain(world, gold_of(view))
        newest = ledger.latest(world, gold_of(view))
        counted = sum(newest.totals.values()) if newest else 0
        rows = sum(len(world.rows(Tables.of(CONTRACTS[stream]).log)) for stream in view.streams)
        check(counted == rows, SUMS, f"{gold_of(view)} counts {counted} rows of silver, which has {rows}")


def _in_bronze(row: Row) -> tuple[Any, ...]:
    return row["topic"], row["partition"], row["offset"]


def _in_silver(row: Row) -> tuple[Any, ...]:
    return row["_topic"], row["_partition"], row["_offset"]


def _check_same(invariant: str, table: str, expected: set[Any], rows: Rows, place: Any) -> None:
    found = [place(row) for row in rows]
    check(len(found) == len({*found}), invariant, f"{table} has an offset twice")
    check({*found} == expected, invariant, f"{table}: {_difference({*found}, expected)}")


def _difference(found: set[Any], expected: set[Any]) -> str:
    return f"too many {sorted(found - expected)[:3]}, missing {sorted(expected - found)[:3]}"


def check_chain(world: World, table: str) -> None:
    """The ledger of a table."""
    entries = [*ledger.entries(world, table)]
    if not table.startswith("bronze."):
        # A row of gold is no offset, and a replay of silver writes rows of offsets that were taken before.
        entries = [replace(entry, rows=0) for entry in entries]
    for problem in problems(reversed(entries)):
        raise Broken(CHAIN, problem)


def cells(view: View, rows: Iterable[Row], invariant: str) -> Cells:
    """The rows of a view as the oracle has them: by key."""
    found: Cells = {}
    for row in rows:
        key, value = CELLS[view.name](row)
        check(key not in found, invariant, f"{view.name} has {key} twice")
        found[key] = value
    return found


CELLS: Mapping[str, Any] = {
    "per_window": lambda r: ((r["window_start"], r["user_id"]), (r["clicks"], r["amount"])),
    "hopping": lambda r: ((r["window_start"], r["user_id"]), (r["clicks"], r["amount"])),
    "sessions": lambda r: ((r["user_id"], r["start"]), (r["clicks"], r["amount"])),
    "pairs": lambda r: ((r["click"], r["number"]), (r["user_id"], r["buy"])),
    "balances": lambda r: (r["account_id"], (r["name"], r["buys"], r["amount"])),
}


def check_views(world: World) -> None:
    """Both layers against the oracle, when all is closed."""
    records = oracle.judged(world.kafka)
    for name, expected in oracle.expected(records).items():
        view = VIEWS[name]
        for invariant, table in ((GOLD, gold_of(view)), (LIVE, live_of(view))):
            found = cells(view, world.rows(table), invariant)
            wrong = differing(found, expected)
            check(not wrong, invariant, f"{table}: {wrong}")


def check_now(world: World, view: View) -> None:
    """What must hold of a view at any time."""
    if view in WINDOWED:
        # Windows change with each row that counts, so each layer has exactly those of its position in the log.
        records = oracle.judged(world.kafka)
        entry = ledger.latest(world, gold_of(view))
        ends = {(r.topic, r.partition): r.end for r in entry.ranges} if entry else {}
        _check_position(GOLD, view, records, ends, world.rows(gold_of(view)))
        (job,) = (job for job in world.jobs.values() if view in job.views)
        position = job.checkpoint.position()
        ends = {(t, p): end for t, of in position.items() for p, end in of.items()}
        if not job.is_between:
            _check_position(LIVE, view, records, ends, world.rows(live_of(view)))
    elif not view.upserts:
        _check_closed(world, view)


def _check_position(invariant: str, view: View, records: list[Judged], ends: dict[Place, int], rows: Rows) -> None:
    expected = oracle.expected([r for r in records if r.offset < ends.get(r.place, 0)])[view.name]
    wrong = differing(cells(view, rows, invariant), expected)
    check(not wrong, invariant, f"{view.name} at its position: {wrong}")


def _check_closed(world: World, view: View) -> None:
    """As reconciliation: the rows that both layers have closed are the same in both."""
    gold_until, live_until = batch_final(world, view), live_final(world, view)
    if gold_until and live_until:
        until = min(gold_until, live_until)
        closed = view.closed(BEGINNING, until)
        gold, live = (
            cells(view, world.rows(t).where(closed), of) for t, of in ((gold_of(view), GOLD), (live_of(view), LIVE))
        )
        wrong = differing(gold, live)
        check(not wrong, AGREE, f"{view.name} before {until}: {wrong}")


def differing(left: Cells, right: Cells) -> list[str]:
    """Some of the keys whose values differ."""
    keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
    return [f"{key}: {left.get(key)} and {right.get(key)}" for key in sorted(keys, key=str)[:4]]


class FinalRows:
    """Rows that were final stay as they are."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[datetime, Cells]] = {}
        self._version: dict[str, int] = {}

    def check(self, world: World, view: View) -> None:
        """Compare the rows of gold that were final at the last look."""
        until, table = batch_final(world, view), world.lake.tables.get(gold_of(view))
        if view.upserts or until is None or table is None or len(table.versions) == self._version.get(view.name):
            return
        self._version[view.name] = len(table.versions)
        rows, before = world.rows(gold_of(view)), self._known.get(view.name)
        if before:
            check(until >= before[0], FINAL, f"{gold_of(view)}: until went back from {before[0]} to {until}")
            now = cells(view, rows.where(view.final_before(before[0])), GOLD)
            wrong = differing(before[1], now)
            if wrong:
                late = behind(world, view)
                wrong = [each for each in wrong if not any(each.startswith(str(key)) for key in late)]
            check(not wrong, FINAL, f"{gold_of(view)} before {before[0]}: {wrong}")
        self._known[view.name] = until, cells(view, rows.where(view.final_before(until)), GOLD)

    def forget(self, view: View) -> None:
        """Somebody has changed history on purpose."""
        self._known.pop(view.name, None)
        self._version.pop(view.name, None)


def behind(world: World, view: View) -> Cells:
    """The windows that have records from further behind their partition than ``max_out_of_orderness``.

    They count in windows by their own timestamps, even after the watermark has passed.
    """
    if view not in WINDOWED:
        return {}
    records = [r for r in oracle.judged(world.kafka) if r.timestamp < r.watermark]
    return oracle.expected(records)[view.name]


def check_orderly(world: World) -> None:
    """With clocks that agree, a view's limit is the only thing that makes rows late."""
    for r in oracle.judged(world.kafka):
        if r.outcome != oracle.MARKER:
            check(r.timestamp >= r.watermark, ORDERLY, f"{r.place} {r.offset} is {r.watermark - r.timestamp} ms behind")


def versions(world: World) -> dict[str, int]:
    """The newest version of each table that has a ledger or is live."""
    return {name: len(table.versions) for name, table in world.lake.tables.items()}


def heartbeats(world: World) -> int:
    """How many heartbeats the log has."""
    return sum(r.form is Form.HEARTBEAT for log in world.kafka.log.values() for r in log)
