"""A small slice: of so few rows Spark only parses the text. Which of them silver takes is found in Arrow and Python.

Spark parses rows that a client sends while it plans the query, without a job: 500 of a stream in 30 ms. The rules are those of
:mod:`lockstep.refine.watermarks`, :mod:`lockstep.refine.source_order`, :mod:`lockstep.refine.truncates` and
:mod:`lockstep.refine.duplicates`, which do the same in Spark for large slices.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.definition.columns import FIRST_GENERATION, POSITION
from lockstep.definition.events import as_rows
from lockstep.definition.tables import bronze_of
from lockstep.definition.view import literal
from lockstep.lake import small_commits
from lockstep.ledger.ranges import to_where
from lockstep.refine.classified import COMMIT, Collected, Commit
from lockstep.refine.duplicates import identity
from lockstep.refine.parse import parse
from lockstep.refine.unknown import with_unknown
from lockstep.refine.writers import writers_of
from lockstep.session import collect, to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.ledger.entries import Entry
    from lockstep.ledger.ranges import Range
    from lockstep.refine.truncates import Truncate
    from lockstep.settings import Settings

_RAW = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
# While Spark plans a query, it has the rows that a client sends several times in its memory.
AT_ONCE = 10_000
_MICROSECOND = timedelta(microseconds=1)
Identity = tuple[Any, ...]


def parsed(
    spark: "SparkSession", settings: "Settings", contract: "Contract", ranges: "list[Range]", ask_again: bool = True
) -> pa.Table:
    """All records of some ranges in their order, with the columns of ``parse`` and ``_unknown``. Bronze is read without Spark.

    Raises:
        RegistryDown: a schema is not known yet (see :func:`lockstep.refine.writers.writers_of`).
    """
    raw = small_commits.collect(settings, bronze_of(contract), to_where(ranges), _RAW)
    writers = writers_of(settings, contract, raw["value"].to_pylist() if contract.by_registry else [], ask_again)
    # Not slices: PySpark refuses lists (headers) that have others before them.
    places = (range(start, min(start + AT_ONCE, len(raw))) for start in range(0, len(raw), AT_ONCE))
    pieces = [raw.take(pa.array(rows)) for rows in places] or [raw]
    rows = pa.concat_tables(
        collect(with_unknown(parse(to_dataframe(spark, piece), contract, writers), contract)) for piece in pieces
    )
    return rows.sort_by([("_partition", "ascending"), ("_offset", "ascending")])


def small_slice(settings: "Settings", contract: "Contract", previous: "Entry | None", rows: pa.Table) -> Collected:
    """The :func:`parsed` rows, classified by what silver has: its newest entry, and its log up to there."""
    kept = kept_before(settings, previous, rows, contract) if previous else {}
    return Collected(classify(rows, contract, previous, kept))


def classify(
    parsed: pa.Table, contract: "Contract", previous: "Entry | None", kept: Mapping[Identity, int]
) -> pa.Table:
    """Add what silver needs to know of each row: ``_outcome``, and what its kind of stream has besides. Pure.

    Args:
        parsed: all records of some ranges, as :func:`parsed` gives them.
        previous: silver's entry before these ranges.
        kept: by identity, when the row that was kept last arrived (microseconds since 1970, UTC).
    """
    if contract.kind == "events":
        parsed = parsed.append_column("_watermark", _watermarks(parsed, contract, previous.newest if previous else {}))
    else:
        commits, truncated = (previous.commits, previous.truncated) if previous else ({}, None)
        for name, column in {**_order(parsed, commits), "_ended": _ended(parsed, truncated)}.items():
            parsed = parsed.append_column(name, column)
    return parsed.append_column("_outcome", pa.array(_outcomes(parsed, contract, dict(kept)), pa.string()))


def kept_before(settings: "Settings", previous: "Entry", parsed: pa.Table, contract: "Contract") -> dict[Identity, int]:
    """By identity, when the row of silver's log that was kept last arrived, of which one of the parsed rows may be a copy."""
    # Only these can be copies. Other records may be as old as anybody says.
    good = parsed.filter(~pc.field("_marker") & pc.field("_reason").is_null())
    if not good.num_rows:
        return {}
    since = pc.min(good["_arrival"]).as_py() - contract.dedup_window
    names = identity(contract)
    earlier = small_commits.collect(settings, previous.table, f"_arrival >= {literal(since)}", (*names, "_arrival"))
    # In Arrow first: a day of a log is many rows, and few of them have one of these ids.
    like_new = earlier.filter(pc.is_in(earlier[names[0]], good[names[0]].combine_chunks()))
    found: dict[Identity, int] = {}
    for name, at in zip(_identities(like_new, contract), _micros(like_new), strict=True):
        found[name] = max(at, found.get(name, at))
    return found


def _watermarks(parsed: pa.Table, contract: "Contract", before: Mapping[int, int]) -> pa.Array:
    bound = contract.max_out_of_orderness // _MICROSECOND
    newest = {partition: milliseconds * 1000 for partition, milliseconds in before.items()}
    found = []
    for partition, at in zip(parsed["_partition"].to_pylist(), _micros(parsed), strict=True):
        newest[partition] = max(at, newest.get(partition, at))
        found.append(newest[partition] - bound)
    return pa.array(found, pa.int64()).cast(parsed.schema.field("_arrival").type)


def _order(parsed: pa.Table, before: Mapping[int, Commit]) -> dict[str, pa.Array]:
    newest, streamed, fallen, earlier = dict(before), list[bool](), list[bool](), list[int | None]()
    for row in parsed.select(["_marker", "_reason", "_by_us", "_op", "_partition", *COMMIT]).to_pylist():
        is_streamed = _is_good(row) and not row["_by_us"] and row["_op"] != "r"
        commit, last = (row[COMMIT[0]], row[COMMIT[1]]), newest.get(row["_partition"])
        streamed.append(is_streamed)
        fallen.append(is_streamed and last is not None and commit < last)
        earlier.append(last and last[1])
        if is_streamed:
            newest[row["_partition"]] = max(commit, last or commit)
    return {
        "_streamed": pa.array(streamed, pa.bool_()),
        "_fallen": pa.array(fallen, pa.bool_()),
        "_earlier_commit": pa.array(earlier, pa.int64()),
    }


def _ended(parsed: pa.Table, truncate: "Truncate | None") -> pa.Array:
    if truncate is None:
        return pa.array([False] * parsed.num_rows, pa.bool_())
    rows = parsed.select(["_marker", "_reason", "_deleted", *POSITION]).to_pylist()
    ended = [_is_good(row) and not row["_deleted"] and tuple(row[n] for n in POSITION) < truncate[:3] for row in rows]
    return pa.array(ended, pa.bool_())


def _is_good(row: Mapping[str, Any]) -> bool:
    """As :data:`lockstep.refine.parse.GOOD`."""
    return not row["_marker"] and row["_reason"] is None


def _outcomes(parsed: pa.Table, contract: "Contract", kept: dict[Identity, int]) -> Iterator[str]:
    window = contract.dedup_window // _MICROSECOND
    columns = (
        parsed["_erased"].to_pylist(),
        parsed["_marker"].to_pylist(),
        parsed["_reason"].to_pylist(),
        _identities(parsed, contract),
        _micros(parsed),
    )
    for is_erased, marker, reason, name, at in zip(*columns, strict=True):
        if is_erased:
            yield "erased"
        elif marker:
            yield "markers"
        elif reason is not None:
            yield "quarantined"
        elif name in kept and at - kept[name] <= window:
            yield "duplicates"
        else:
            kept[name] = at
            yield "silver"


def _identities(rows: pa.Table, contract: "Contract") -> Iterator[Identity]:
    names = identity(contract)
    columns = [pc.fill_null(rows[n], FIRST_GENERATION) if n == "_generation" else rows[n] for n in names]
    return as_rows(pa.table(columns, [*names]))


def _micros(rows: pa.Table) -> list[int]:
    found: list[int] = rows["_arrival"].cast(pa.int64()).to_pylist()
    return found
