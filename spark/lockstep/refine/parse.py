"""Parse the raw bytes of a stream by its contract. Pure, and the same in batch and live.

Each row of bronze becomes exactly one row, with the payload's columns and:

=================  ===========  ==========================================================================================
``_topic``         STRING       provenance: topic, partition and offset of the record
``_partition``     INT
``_offset``        BIGINT
``_arrival``       TIMESTAMP    the record's Kafka timestamp (UTC)
``_marker``        BOOLEAN      a heartbeat, a tombstone, a TRUNCATE, or an erased record: counted, but no data
``_erased``        BOOLEAN      the record's key and value were erased
``_text``          STRING       the value as JSON, whatever the format of the stream; null if it cannot be read
``_reason``        STRING       why the row goes to quarantine; null for a good one. Last come the stream's rules: all that
                                it does not meet
=================  ===========  ==========================================================================================

Changes also have ``_op`` (Debezium's c, u, d, r, t), ``_lsn`` and ``_commit_lsn`` (BIGINT), ``_committed_at``, ``_deleted``,
``_before``: the row before an update, as JSON without its personal columns, and ``_generation``: the life of the source database
that they come from. ``_truncates`` says that the record is a TRUNCATE, which ends all older rows of its table, ``_ends_snapshot``
that it is the last one of a snapshot, and ``_by_us`` that Lockstep has written it, and not Debezium: a delete of refine, or a
change that was produced again.
"""

import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.contracts.contract import ERASED, HEARTBEAT, PRODUCED_AGAIN
from lockstep.definition.columns import FIRST_GENERATION, TIMESTAMP_FORMAT, ddl, struct
from lockstep.refine.decode import with_text
from lockstep.refine.rules import broken_rules
from lockstep.refine.tokens import tokenise

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.contracts import Contract
    from lockstep.formats.confluent import Writers

# The header in which a change has the generation of its source. Without it, it is of the first one.
GENERATION = "lockstep-generation"
# Who wrote the deletes of :mod:`lockstep.refine.deletes`, in the place of Debezium's connector.
US = "lockstep"
# How Debezium marks the last row of a table, and of all tables, in a snapshot.
_LAST = ("last_in_data_collection", "last")
# What Debezium writes in the place of a long text, and of long bytes, that an UPDATE has not changed: without REPLICA IDENTITY
# FULL, PostgreSQL's log does not have it.
_UNAVAILABLE = "__debezium_unavailable_value"
_UNAVAILABLE_BYTES = base64.b64encode(_UNAVAILABLE.encode()).decode()
_OF_RECORD = ("_topic", "_partition", "_offset", "_arrival", "_key", "_value")
# A row that is data, and passed validation.
GOOD = "NOT _marker AND _reason IS NULL"
_CORRUPT = "_corrupt_record"
# Debezium writes a date as 2026-11-25Z (time.precision.mode=isostring).
_OPTIONS: Mapping[str, dict[str, str]] = {
    "events": {"columnNameOfCorruptRecord": _CORRUPT},
    "changes": {"columnNameOfCorruptRecord": _CORRUPT, "dateFormat": "yyyy-MM-dd['Z']"},
}
# Spark parses times beyond these, such as PostgreSQL's infinity, but neither writers of Delta nor SQL know them.
_CALENDAR = {"DATE": ("0001-01-01", "9999-12-31"), "TIMESTAMP": ("0001-01-01", "9999-12-31 23:59:59.999999")}
_SOURCE = "STRUCT<lsn: BIGINT, ts_ms: BIGINT, snapshot: STRING, sequence: STRING, connector: STRING>"


def parse(
    records: "DataFrame",
    contract: "Contract",
    writers: "Writers | None" = None,
    tokens: "Callable[[Contract], Mapping[str, Column]]" = tokenise,
) -> "DataFrame":
    """Parse bronze's rows. None is dropped and none fails: a row that cannot be parsed has a ``_reason``.

    Args:
        writers: the schemas of records in Confluent's wire format; default: the contract's.
        tokens: what the personal columns become.
    """
    is_event = contract.kind == "events"
    parsed = with_text(records, contract, writers).select(
        F.col("topic").alias("_topic"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        F.col("timestamp").alias("_arrival"),
        F.col("key").alias("_key"),
        F.col("value").alias("_value"),
        F.col("headers").alias("_headers"),
        "_text",
        "_undecoded",
        F.from_json("_text", _event(contract) if is_event else _change(contract), _OPTIONS[contract.kind]).alias(
            "_payload"
        ),
    )
    # Few rows are parsed while Spark plans, and then each of these steps copies them: so there are only as many as are needed.
    flat = parsed.select(
        *_OF_RECORD,
        _is_marker(contract).alias("_marker"),
        _has_header(ERASED).alias("_erased"),
        "_text",
        "_undecoded",
        (F.col("_payload").isNull() | F.col(f"_payload.{_CORRUPT}").isNotNull()).alias("_malformed"),
        *(_flat_event(contract) if is_event else _flat_change(contract)),
    )
    reason = F.when(~F.col("_marker"), _reason(contract)).alias("_reason")
    secret = tokens(contract) if contract.pii else {}
    left_out = ", ".join(f"`{name}`" for name in ("_undecoded", "_malformed", *secret))
    columns = (column.alias(name) for name, column in secret.items())
    return flat.select(F.expr(f"* EXCEPT ({left_out})"), reason, *columns)


def _is_marker(contract: "Contract") -> "Column":
    marker = _has_header(HEARTBEAT) | _has_header(ERASED)
    return marker | F.col("_value").isNull() | _truncates() if contract.kind == "changes" else marker


def _has_header(name: str) -> "Column":
    return F.coalesce(F.exists("_headers", lambda h: h["key"] == name), F.lit(False))


def _truncates() -> "Column":
    return F.coalesce((F.col("_payload.op") == "t") & F.col("_payload.source.lsn").isNotNull(), F.lit(False))


def _event(contract: "Contract") -> str:
    return ddl({**contract.columns, _CORRUPT: "STRING"})


def _change(contract: "Contract") -> str:
    row = struct(contract.columns)
    return ddl({"before": row, "after": row, "op": "STRING", "source": _SOURCE, _CORRUPT: "STRING"})


def _flat_event(contract: "Contract") -> "list[Column]":
    return [F.col(f"_payload.{name}").alias(name) for name in contract.columns]


def _flat_change(contract: "Contract") -> "list[Column]":
    deleted = F.col("_payload.op") == "d"
    ends_snapshot = (F.col("_payload.op") == "r") & F.col("_payload.source.snapshot").isin(*_LAST)
    generation = F.get(F.filter("_headers", lambda h: h["key"] == GENERATION), F.lit(0))["value"]
    public = [F.col(f"_payload.before.{name}") for name in contract.columns if name not in contract.pii]
    before = F.when(F.col("_payload.op") == "u", F.to_json(F.struct(*public), {"timestampFormat": TIMESTAMP_FORMAT}))
    row = F.when(deleted, F.col("_payload.before")).otherwise(F.col("_payload.after"))
    lsn = F.col("_payload.source.lsn")
    by_refine = F.coalesce(F.col("_payload.source.connector"), F.lit("")) == US
    # Debezium: source.sequence is ["<LSN of the last commit>", "<LSN of this row>"]; the first is null in a snapshot, which Spark
    # gives as the text null.
    commit = F.get_json_object(F.col("_payload.source.sequence"), "$[0]").try_cast("bigint")
    return [
        *(row[name].alias(name) for name in contract.columns),
        F.col("_payload.op").alias("_op"),
        lsn.alias("_lsn"),
        F.coalesce(commit, lsn).alias("_commit_lsn"),
        F.timestamp_millis(F.col("_payload.source.ts_ms")).alias("_committed_at"),
        F.coalesce(deleted, F.lit(False)).alias("_deleted"),
        F.when(F.col("_payload.before").isNotNull(), before).alias("_before"),
        F.coalesce(generation.cast("string").try_cast("int"), F.lit(FIRST_GENERATION)).alias("_generation"),
        _truncates().alias("_truncates"),
        F.coalesce(ends_snapshot, F.lit(False)).alias("_ends_snapshot"),
        (by_refine | _has_header(PRODUCED_AGAIN)).alias("_by_us"),
    ]


def _reason(contract: "Contract") -> "Column":
    empty = F.col("_value").isNull() | (F.length("_value") == 0)
    reason = F.when(empty, "empty").when(F.col("_undecoded").isNotNull(), F.col("_undecoded"))
    reason = reason.when(F.col("_malformed"), "malformed")
    if contract.kind == "changes":
        reason = reason.when(F.col("_op").isNull() | F.col("_lsn").isNull(), "not a change event")
        # Nothing else is asked of a delete: without REPLICA IDENTITY FULL, its record has no more than the key.
        for name in contract.unique_id:
            reason = reason.when(F.col(name).isNull(), f"missing {name}")
    asked = ~F.col("_deleted") if contract.kind == "changes" else F.lit(True)
    for name in contract.required:
        reason = reason.when(asked & F.col(name).isNull(), f"missing {name}")
    for name, kind in contract.columns.items():
        if kind in _CALENDAR:
            first, last = (F.lit(end).cast(kind) for end in _CALENDAR[kind])
            reason = reason.when(~F.col(name).between(first, last), f"out of range {name}")
        if contract.is_captured and (unavailable := _is_unavailable(name, kind)) is not None:
            reason = reason.when(unavailable, f"unavailable {name}")
    if contract.kind == "events":
        ahead = F.col(contract.event_time) - F.col("_arrival")
        limit = F.make_dt_interval(secs=F.lit(contract.max_clock_skew.total_seconds()))
        reason = reason.when(ahead > limit, "from the future")
    return reason.when(asked, broken_rules(contract)) if contract.rules else reason


def _is_unavailable(name: str, kind: str) -> "Column | None":
    if kind == "STRING":
        return F.col(name).isin(_UNAVAILABLE, _UNAVAILABLE_BYTES)
    return F.array_contains(name, _UNAVAILABLE) if kind == "ARRAY<STRING>" else None
