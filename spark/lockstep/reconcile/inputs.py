"""Find the rows of a view that can be compared: those that both layers have closed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.definition import View
from lockstep.definition.tables import gold_of, live_of
from lockstep.live.frontier import (
    LiveSnapshot,
    batch_final,
    checkpoint_location,
    live_final,
    live_positions,
    live_within,
    live_without_rows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings


@dataclass(frozen=True)
class ComparisonInput:
    """The rows of both layers, and the positions in the log that they come from.

    Args:
        until: rows before this instant (UTC) can be compared.
        entry: the entry of gold's ledger.
        snapshot: the live table's version and position.
        live_version, batch_version: the versions of the tables at which they are read; None: the newest.
    """

    until: datetime
    live: "DataFrame"
    batch: "DataFrame"
    entry: ledger.Entry
    snapshot: LiveSnapshot
    live_version: int | None = None
    batch_version: int | None = None


def comparison_input(spark: "SparkSession", settings: "Settings", view: View) -> ComparisonInput | None:
    """The rows of the view that both layers have closed; None: there are none yet."""
    newest = next(lake.commits(settings, gold_of(view)), None)
    entry = ledger.latest(settings, gold_of(view))
    if newest is None or entry is None or not lake.exists(settings, live_of(view)):
        return None
    if view.upserts:
        return _upserted(spark, settings, view, newest, entry)
    return _closed(spark, settings, view, entry)


def _upserted(
    spark: "SparkSession", settings: "Settings", view: View, newest: lake.Commit, entry: ledger.Entry
) -> ComparisonInput | None:
    """An upserted view closes no rows: read live at the version at which it was not ahead of gold."""
    snapshot = live_within(settings, view, entry) or live_without_rows(settings, view)
    if snapshot is None:
        return None
    live = lake.read(spark, settings, live_of(view), snapshot.version)
    # The entry is read after the newest commit, and can be newer.
    version = max(newest.version, entry.version)
    batch = lake.read(spark, settings, gold_of(view), version)
    committed_at = datetime.fromtimestamp(newest.timestamp / 1000, UTC)
    return ComparisonInput(max(snapshot.at, committed_at), live, batch, entry, snapshot, snapshot.version, version)


def _closed(spark: "SparkSession", settings: "Settings", view: View, entry: ledger.Entry) -> ComparisonInput | None:
    # Positions are read before rows: rows that arrive in between cannot change a window that is closed at these positions.
    position = live_positions(checkpoint_location(settings, view), view)
    live_until, batch_until = live_final(settings, view), batch_final(settings, view)
    if live_until is None or batch_until is None:
        return None
    now = datetime.now(UTC)
    live, batch = (lake.read(spark, settings, table) for table in (live_of(view), gold_of(view)))
    snapshot = LiveSnapshot(0, now, position, live_until, now)
    return ComparisonInput(min(live_until, batch_until), live, batch, entry, snapshot)
