"""How many new rows of a view's streams count, and when the first and the last of those happened.

By Spark, or from a few collected rows without it: the same rule, which the view declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from lockstep.definition.states import micros
from lockstep.definition.view import BEGINNING, EPOCH, MICROSECOND, literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.definition import View


@dataclass(frozen=True)
class Summary:
    """What new rows are to a view.

    Args:
        counts: ``counted``, ``ignored`` and ``side_output``.
        first: when the first of the rows that count happened (UTC); None: none counts.
        last: when the last of them happened.
    """

    counts: Mapping[str, int]
    first: datetime | None = None
    last: datetime | None = None


def summary(view: "View", rows: "Mapping[str, DataFrame]", final: datetime = BEGINNING) -> Summary:
    """Sum up new rows by Spark.

    Args:
        rows: by stream, the new rows of silver.
        final: of a view with machines, the instant (UTC) from before which they take no event any more. There is such an event
            only if its partition was added later, with records older than those of the others.
    """
    by_stream = []
    for stream, time in view.times.items():
        counted = F.expr(f"{view.counts(time)} AND {time} >= {literal(_taken_from(view, final))}" if time else "true")
        instant = F.when(counted, F.expr(time or "_arrival"))
        by_stream.append(
            rows[stream].agg(
                F.count_if(counted).alias("counted"),
                F.count_if(~counted).alias("late"),
                F.min(instant).alias("first"),
                F.max(instant).alias("last"),
            )
        )
    found = reduce(lambda left, right: left.unionAll(right), by_stream).collect()
    return _total(view, [{name: _aware(value) for name, value in row.asDict().items()} for row in found])


def summary_of_few(view: "View", rows: Mapping[str, pa.Table], final: datetime = BEGINNING) -> Summary:
    """The same from collected rows. The time of each stream must be one of its columns."""
    return _total(view, [_few(view, rows[stream], time, final) for stream, time in view.times.items()])


def _few(view: "View", rows: pa.Table, time: str, final: datetime) -> dict[str, Any]:
    if not time:
        return {"counted": rows.num_rows, "late": 0, **_ends(_micros(rows["_arrival"]))}
    happened = _micros(rows[time])
    late_by = pc.subtract(pc.max_element_wise(*(_micros(rows[name]) for name in view.arrived_by)), happened)
    counted = pc.and_kleene(
        pc.less_equal(late_by, view.limit // MICROSECOND),
        pc.greater_equal(happened, micros(_taken_from(view, final))),
    )
    late = pc.invert(counted)
    return {
        "counted": pc.sum(counted).as_py() or 0,
        "late": pc.sum(late).as_py() or 0,
        **_ends(happened.filter(counted)),
    }


def _micros(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    """Microseconds since the epoch (UTC): Arrow has no greatest of two timestamps with a time zone."""
    return instants.cast(pa.timestamp("us", "UTC")).cast(pa.int64())


def _ends(happened: pa.ChunkedArray) -> dict[str, datetime | None]:
    ends = pc.min_max(happened).as_py()
    return {
        name: None if ends[end] is None else EPOCH + ends[end] * MICROSECOND
        for name, end in (("first", "min"), ("last", "max"))
    }


def _aware(value: Any) -> Any:
    """Spark hands out times without a zone, which are UTC."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _taken_from(view: "View", final: datetime) -> datetime:
    return final if view.keeps_until else BEGINNING


def _total(view: "View", by_stream: list[dict[str, Any]]) -> Summary:
    late = "side_output" if view.policy == "side_output" else "ignored"
    counts = {"counted": 0, "ignored": 0, "side_output": 0}
    counts |= {"counted": sum(of["counted"] for of in by_stream), late: sum(of["late"] for of in by_stream)}
    return Summary(
        counts,
        first=min((of["first"] for of in by_stream if of["first"]), default=None),
        last=max((of["last"] for of in by_stream if of["last"]), default=None),
    )
