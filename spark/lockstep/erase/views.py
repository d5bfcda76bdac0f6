"""Compute a view's gold again without the erased rows of silver: the rows that they touched, its sums, and its machines."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.going_on import machines_from_history
from lockstep.batch.rollup import bounded, covered, written_as
from lockstep.batch.saved_machines import SavedMachines
from lockstep.batch.summary import summary
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import BEGINNING
from lockstep.erase.streams import is_recorded, record, run_id, txn
from lockstep.ledger.ranges import where_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from pyspark.sql import SparkSession

    from lockstep.control.erased import Erasure, Offsets
    from lockstep.definition import Keyed, View
    from lockstep.definition.view import Interval
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Touched:
    """What the erased rows were to a view.

    Args:
        counts: ``counted``, ``ignored`` and ``side_output``.
        first, last: when the first and the last of those that count happened (UTC).
    """

    counts: "Mapping[str, int]"
    first: datetime | None
    last: datetime | None

    def as_json(self) -> dict[str, Any]:
        """For the control database."""
        return {"counts": dict(self.counts), "first": _text(self.first), "last": _text(self.last)}

    @classmethod
    def of_json(cls, found: "Mapping[str, Any]") -> "Self":
        """From the control database."""
        first, last = (datetime.fromisoformat(found[end]) if found[end] else None for end in ("first", "last"))
        return cls(found["counts"], first, last)


def views_of(settings: "Settings", streams: "Mapping[str, object]") -> "list[View]":
    """The views that read one of these streams, and have gold."""
    return [v for v in VIEWS.values() if {*v.streams} & streams.keys() and ledger.latest(settings, gold_of(v))]


def touched(spark: "SparkSession", settings: "Settings", view: "View", offsets: "Mapping[str, Offsets]") -> Touched:
    """What the rows at these offsets, by stream, are to a view, as far as its gold covers them. Changes nothing."""
    newest = ledger.latest(settings, gold_of(view))
    if newest is None:
        return Touched({}, None, None)
    rows = {
        stream: covered(spark, settings, stream, newest).where(
            where_offsets(offsets.get(stream, {}), "_partition", "_offset")
        )
        for stream in view.streams
    }
    found = summary(view, rows)
    return Touched(found.counts, found.first, found.last)


def recompute(spark: "SparkSession", settings: "Settings", view: "View", erasure: "Erasure", before: Touched) -> None:
    """Replace what the erased rows touched. The caller holds the lease of gold, and silver has no erased rows any more."""
    table = gold_of(view)
    newest = ledger.latest(settings, table)
    if newest is None or is_recorded(settings, table, erasure):
        return
    silver = {stream: covered(spark, settings, stream, newest) for stream in view.streams}
    is_mixed = not ledger.by_this_code(settings, newest)
    span = _span(view, newest, before)
    if span:
        rows = result(view, silver, *span)
        lake.replace(rows, settings, table, view.interval(*span), txn(table, erasure), record(erasure))
    more: dict[str, Any] = {"until": newest.until.isoformat()} if newest.until else {}
    if view.keeps_until and newest.until:
        files = SavedMachines(settings, view.name)
        more["machines"] = files.save(machines_from_history(cast("Keyed", view), silver, newest.until))
    logs = (Tables.of(CONTRACTS[stream]).log for stream in view.streams)
    entry = ledger.record(
        "rollup",
        newest,
        run_id(erasure),
        ledger.unchanged_position(newest),
        mixed=is_mixed,
        counts={name: -count for name, count in before.counts.items()},
        sources={log: lake.newest_version(settings, log) for log in logs},
        erasure=erasure.number,
        **written_as(view, span),
        **more,
    )
    lake.append_record(settings, table, ledger.txn(table, entry), entry)
    ledger.committed(settings, table, entry)
    if "machines" in more:
        SavedMachines(settings, view.name).remove_all_but([more["machines"]])


def _span(view: "View", newest: ledger.Entry, before: Touched) -> "Interval | None":
    if before.first is None or before.last is None:
        return None
    if view.upserts:
        # It is written as a whole, as far as it goes.
        return BEGINNING, bounded(view, newest, BEGINNING, BEGINNING)[1]
    low, high = bounded(view, newest, *view.touched_by(before.first, before.last))
    return (low, high) if low < high else None


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
