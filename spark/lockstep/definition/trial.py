"""Try a view on a Spark server, with rows that are made up. It reads and writes no table."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Keyed, View, states
from lockstep.definition.check import problems
from lockstep.definition.columns import PROVENANCE, ddl, log_columns
from lockstep.definition.events import event, events
from lockstep.definition.keyed import Event, Row, advance, final, in_log_order
from lockstep.definition.machine import Machine
from lockstep.definition.panes import panes
from lockstep.definition.version import definition_version
from lockstep.definition.windowed import Windowed
from lockstep.definition.windowing import in_one_step, in_windows, transform
from lockstep.errors import ViewRefused

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_START = datetime(2026, 1, 1, tzinfo=UTC)
_NESTED = ("ARRAY", "MAP", "STRUCT")
# The definitions that this process has tried with success: both layers ask, and a trial takes seconds.
_succeeded: set[str] = set()


def ensure(spark: "SparkSession", view: View) -> None:
    """Refuse a view that is not valid, or that Spark cannot run in both layers. It reads and writes no table.

    Raises:
        ViewRefused: says why, and what to change.
    """
    if reasons := problems(view):
        raise ViewRefused(view.name, reasons)
    definition = definition_version(view)
    if definition in _succeeded:
        return
    if reasons := refusals(spark, view):
        raise ViewRefused(view.name, reasons)
    _succeeded.add(definition)


def refusals(spark: "SparkSession", view: View) -> list[str]:
    """The reasons why the view cannot run in one of the layers, each with its fix; empty if it can. Takes a second or two.

    Call :func:`~lockstep.definition.check.problems` first: what it finds is not tried here.
    """
    try:
        return [*(_windowed(spark, view) if isinstance(view, Windowed) else _keyed(spark, view))]
    except PySparkException as error:
        return [f"it does not run in batch: {_first_line(error)}"]


def _windowed(spark: "SparkSession", view: Windowed) -> Iterator[str]:
    contract = CONTRACTS[view.input]
    rows = samples(spark, contract)
    result = transform(view, rows)
    yield from _other_columns(spark, view, result)
    if panes(view) and not _merge(view, rows):
        yield (
            "its rows are others where a window is made of parts: let what merges the parts of its measures give what the "
            "measure gives over all rows, such as sum({}) for count(*)"
        )
    doubled = result.groupBy(*view.key).count().where("count > 1").limit(1).collect()
    if doubled:
        key = {name: str(doubled[0][name]) for name in view.key}
        yield f"its key is not unique: two rows have {key}; add the column to the key by which they differ"
    try:
        _try_live(spark, view, contract)
    except PySparkException as error:
        yield (
            f"it does not run as a live query: {_first_line(error)}; use aggregates that a stream can go on with, and none of "
            "DISTINCT or OVER, or make it a Keyed view"
        )


def _merge(view: Windowed, rows: "DataFrame") -> bool:
    """Whether the rows are the same where each row is counted in each of its windows. One row comes again in the next pane."""
    times = {view.event_time, *view.arrived_by}
    later = {time: F.col(time) + F.make_dt_interval(secs=F.lit(view.slide.total_seconds())) for time in times}
    rows = rows.unionByName(rows.limit(1).withColumns(later))
    one, other = (sorted(map(repr, way(view, rows).collect())) for way in (transform, in_one_step))
    return one == other


def _other_columns(spark: "SparkSession", view: View, result: "DataFrame") -> Iterator[str]:
    expected = [f"{f.name} {f.dataType.simpleString()}" for f in spark.createDataFrame([], ddl(view.columns)).schema]
    actual = [f"{f.name} {f.dataType.simpleString()}" for f in result.schema]
    if expected != actual:
        yield (
            f"its function does not give the columns that it declares: it gives {', '.join(actual)}; make both the same, in "
            "the same order"
        )


def _try_live(spark: "SparkSession", view: Windowed, contract: Contract) -> None:
    """Start it on an empty source with the sink ``noop``: Spark refuses what a stream cannot do before the first row."""
    nulls = {name: F.lit(None).cast(kind) for name, kind in {**contract.columns, **PROVENANCE}.items()}
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    rows = ticks.select(*(column.alias(name) for name, column in nulls.items()), "timestamp").where("false")
    rows = rows.withColumn(view.event_time, F.col("timestamp")).drop("timestamp")
    rows = rows.withWatermark(view.event_time, "1 hour").dropDuplicatesWithinWatermark([*contract.unique_id])
    live = in_windows(rows, {view.name: view}, {view.name: view.grouping}, view.state_kept)
    live.writeStream.format("noop").outputMode("update").start().stop()


def _keyed(spark: "SparkSession", view: Keyed) -> Iterator[str]:
    spark.createDataFrame([], ddl(view.columns))
    rows_of_events = events({view.name: view}, {stream: samples(spark, CONTRACTS[stream]) for stream in view.streams})
    by_key: dict[str, list[Any]] = {}
    for row in rows_of_events.collect():
        by_key.setdefault(row["_key"], []).append(event(row.asDict()))
    emitted = []
    for of_one_key in by_key.values():
        try:
            state, rows = advance(view, None, sorted(of_one_key), _START + timedelta(days=3))
        except Exception as error:
            reason = f"{type(error).__name__}: {error}; a machine must take whatever its streams' contracts allow"
            raise ViewRefused(view.name, [f"its machine fails on rows that are made up ({reason})"]) from error
        emitted += final(view, rows)
        try:
            states.dumps(state)
        except TypeError as error:
            yield f"it does not run as a live query, which keeps states as JSON: {error}"
            return
        if view.map_state and not _touches_what_it_says(view, of_one_key):
            yield (
                f"its rows are others where process sees only the entries of {view.map_state.name} that touched names: let "
                "touched name all that process reads or writes"
            )
    if unknown := sorted({name for row in emitted for name in row} - {"at", *view.columns}):
        yield f"its rows have the columns {', '.join(unknown)}, which it does not declare: declare them or leave them out"
    keys = Counter(tuple(str(row.get(name)) for name in view.key) for row in emitted)
    if keys and (most := keys.most_common(1)[0])[1] > 1:
        key = dict(zip(view.key, most[0], strict=True))
        yield f"its key is not unique: two rows have {key}; add the column to the key by which they differ"


def _touches_what_it_says(view: Keyed, events: list[Event]) -> bool:
    """Whether the rows are the same of a machine that is stored after each event."""
    ordered = [*in_log_order(events), *sorted(e for e in events if not e.is_change)]
    machine, buckets = Machine(), dict[int, str]()
    found: list[Row] = []
    for one in ordered:
        rows, changed = machine.run(view, [one], None, buckets)
        buckets = {number: text for number, text in (buckets | dict(changed)).items() if text}
        machine = Machine.load(machine.dump())
        found += rows
    _, expected = advance(view, None, ordered, None)
    return found == expected


def samples(spark: "SparkSession", contract: Contract) -> "DataFrame":
    """Rows of a stream's log, within one minute: each of them differs from the first in one column."""
    kinds = log_columns(contract)
    first = {name: _value(name, kind, 0) for name, kind in kinds.items()}
    rows = [first] + [first | {name: _value(name, kind, 1)} for name, kind in kinds.items()]
    unique = {"_offset", "_lsn", "_commit_lsn", *contract.unique_id} & kinds.keys()
    for number, row in enumerate(rows):
        row |= {name: str(number) for name in unique if kinds[name] != "TIMESTAMP"}
    casts = [_cast(name, kind).alias(name) for name, kind in kinds.items()]
    texts = ", ".join(f"{name} STRING" for name in kinds)
    return spark.createDataFrame([[row[name] for name in kinds] for row in rows], texts).select(*casts)


def _cast(name: str, kind: str) -> "Column":
    """A column of texts in another type. Spark casts no text to a nested one: there it is null."""
    return F.from_json(name, kind) if kind.upper().startswith(_NESTED) else F.col(name).cast(kind)


def _value(name: str, kind: str, number: int) -> str:
    if kind == "DATE":
        return (_START + timedelta(days=number)).date().isoformat()
    if kind == "TIMESTAMP":
        return (_START + timedelta(seconds=number)).isoformat()
    if kind == "BOOLEAN":
        return "true" if number else "false"
    return str(number + 1) if kind != "STRING" else f"{name}-{number}"


def _first_line(error: PySparkException) -> str:
    return str(error).strip().partition("\n")[0]
