"""The rows behind a comparison of both layers: what the view is computed over to find out why they differ."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.rollup import covered
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.events import EXACT_JSON
from lockstep.definition.tables import Tables
from lockstep.definition.view import BEGINNING, Interval
from lockstep.ledger.ranges import Range, to_where, where_below
from lockstep.live.frontier import LiveSnapshot
from lockstep.reconcile.compare import values_of
from lockstep.refine.rows import silver_rows
from lockstep.refine.writers import kept_writers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.settings import Settings

Silver = Mapping[str, "DataFrame"]
# By topic and partition, the next offset.
Position = Mapping[str, Mapping[int, int]]


@dataclass(frozen=True)
class Comparison:
    """A view whose layers were compared.

    Args:
        live, batch: the rows that were compared.
        entry: the entry of gold's ledger at which they were compared.
        snapshot: the live table's version, and the position in the log that its rows come from.
    """

    spark: "SparkSession"
    settings: "Settings"
    view: View
    live: "DataFrame"
    batch: "DataFrame"
    entry: ledger.Entry
    snapshot: LiveSnapshot

    @property
    def until(self) -> datetime:
        """The instant (UTC) before which the gold of a keyed view is final."""
        return self.entry.until or BEGINNING

    def silver(self) -> dict[str, "DataFrame"]:
        """The silver rows that gold's position covers, by stream."""
        return {s: covered(self.spark, self.settings, s, self.entry) for s in self.view.streams}

    def silver_of_live(self) -> dict[str, "DataFrame"]:
        """The silver rows that live's position covers, by stream."""
        return {s: self._silver(s).where(below(s, self.snapshot.position)) for s in self.view.streams}

    def parsed(self, stream: str, where: str) -> "DataFrame":
        """The rows of bronze up to gold's position, in silver's columns, whether silver took them or not."""
        contract = CONTRACTS[stream]
        raw = lake.read(self.spark, self.settings, Tables.of(contract).bronze)
        rows = silver_rows(raw, contract, {}, kept_writers(self.settings, contract))
        rows = rows.where(where).where(where_below(self.entry.ranges, contract.topic))
        return rows.select(*self._silver(stream).columns)

    def computed(self, keys: Iterable[str], view: View, silver: Silver, interval: Interval) -> dict[str, str]:
        """The rows of some keys that a view gives over some silver rows: JSON, by key.

        Args:
            keys: as JSON.
            interval: the times ``[low, high)`` of the rows (UTC).
        """
        return self.as_json(keys, result(view, silver, *interval))

    def as_json(self, keys: Iterable[str], rows: "DataFrame") -> dict[str, str]:
        """Those rows of the view that have one of some keys (as JSON): their values as JSON, by key."""
        values = F.struct(*values_of(self.view, rows.columns))
        both = rows.select(key_json(self.view).alias("key"), F.to_json(values, EXACT_JSON).alias("row"))
        wanted = self.key_frame(keys)
        return {row["key"]: row["row"] for row in both.join(F.broadcast(wanted), "key", "left_semi").collect()}

    def key_frame(self, keys: Iterable[str]) -> "DataFrame":
        """The keys as a DataFrame with one column, ``key``."""
        return self.spark.createDataFrame([(key,) for key in keys], "key STRING")

    def _silver(self, stream: str) -> "DataFrame":
        return lake.read(self.spark, self.settings, Tables.of(CONTRACTS[stream]).log)


def between(stream: str, since: Position, position: Position) -> list[Range]:
    """The offsets of a stream's topic from one position in the log to a later one."""
    topic = CONTRACTS[stream].topic
    starts = since.get(topic, {})
    return [Range(topic, "", p, starts.get(p, 0), end) for p, end in position.get(topic, {}).items()]


def below(stream: str, position: Position) -> str:
    """The predicate (SQL) for the stream's rows below a position in the log."""
    return to_where(between(stream, {}, position), "_partition", "_offset")


def key_json(view: View) -> "Column":
    """The key of a row as JSON."""
    return F.to_json(F.struct(*view.key), EXACT_JSON)
