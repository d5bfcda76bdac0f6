"""The events that machines have not processed yet, found by Spark: for one view, or for many in one job.

A job of Spark costs about the same for some hundred rows of one view as of twenty, so the keyed views of a run of roll-ups share
one. Each stream is read once for all of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.definition.events import events
from lockstep.definition.states import micros
from lockstep.definition.view import literal
from lockstep.ledger.ranges import Range, to_where

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.definition import Keyed

# So many new rows of a view are given to saved machines: a cycle that has fallen behind takes them. To compute all of history
# instead would put it further behind.
MOST_ROWS = 200_000
# Views that have at most so many new rows share a job, whose result goes through the memory of the server's driver.
MOST_ROWS_TOGETHER = 50_000
# By stream, rows of its silver log.
Silver = Mapping[str, "DataFrame"]


@dataclass(frozen=True)
class Wanted:
    """The new events of a view.

    Args:
        ranges: by stream, the offsets that its machines have not seen. They decide which changes of tables are new.
        low: all events before this instant (UTC) were processed.
        until: those before this instant are processed now.
        versions: by stream, the version of silver that is read.
    """

    view: "Keyed"
    ranges: Mapping[str, Sequence[Range]]
    low: datetime
    until: datetime
    versions: Mapping[str, int] = field(default_factory=dict)

    def fits(self, other: "Wanted") -> bool:
        """Whether the two can be found together: they read the same silver, and take the same changes of tables."""
        both = self.ranges.keys() & other.ranges.keys()
        return all(
            self.versions.get(s) == other.versions.get(s)
            and (CONTRACTS[s].kind == "events" or self.ranges[s] == other.ranges[s])
            for s in both
        )


def new_events(wanted: Sequence[Wanted], silver: Silver) -> "DataFrame":
    """The changes that are new, and the events that are final now: those before ``until`` that were not before ``low``.

    Args:
        wanted: of one view, or of several that fit together.
        silver: by stream, all rows up to the end of the new ones.

    Returns:
        ``_view``, the view's name, and :data:`lockstep.definition.events.COLUMNS`.
    """
    views = {one.view.name: one.view for one in wanted}
    streams = {stream for one in wanted for stream in one.view.streams}
    found = events(views, {stream: silver[stream].where(may_have(stream, wanted)) for stream in sorted(streams)})
    spans: dict[tuple[datetime, datetime], list[str]] = {}
    for one in wanted:
        spans.setdefault((one.low, one.until), []).append(one.view.name)
    final = (F.col("_view").isin(names) & _between(F.col("_time"), *map(micros, span)) for span, names in spans.items())
    return found.where(F.col("_position").isNotNull() | reduce(or_, final))


def may_have(stream: str, wanted: Iterable[Wanted]) -> str:
    """The predicate (SQL) for the rows of a stream that may have new events: other files can be skipped."""
    readers = [one for one in wanted if stream in one.view.streams]
    if CONTRACTS[stream].kind == "changes":
        return to_where(readers[0].ranges[stream], "_partition", "_offset")
    spans = {(read.time, one.low, one.until) for one in readers for read in one.view.inputs if read.stream == stream}
    of_spans = (f"(({time}) >= {literal(low)} AND ({time}) < {literal(until)})" for time, low, until in sorted(spans))
    return " OR ".join(of_spans)


def _between(value: "Column", low: object, high: object) -> "Column":
    return (value >= F.lit(low)) & (value < F.lit(high))
