"""Columns are a mapping from name to Spark type. Here are those that the platform adds, and Spark's DDL."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

    from lockstep.contracts import Contract

Columns = Mapping[str, str]

# A record as Kafka has it.
BRONZE: Columns = {
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestamp_type": "INT",
    "key": "BINARY",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "value": "BINARY",
}
# Which record a row of silver comes from: topic, partition and offset, and the record's Kafka timestamp (UTC).
PROVENANCE: Columns = {"_topic": "STRING", "_partition": "INT", "_offset": "BIGINT", "_arrival": "TIMESTAMP"}
# What an event has beside the payload: the watermark of its partition when it came (UTC; see lockstep.refine.watermarks).
EVENT: Columns = {"_watermark": "TIMESTAMP"}
# What a change of a table has beside the row: Debezium's operation (c, u, d, r, t), the LSNs of the row and of its commit, the
# time of the commit (UTC), whether it is a delete, the row before an update, as JSON without its PII, and the generation of the
# source: a database that was restored or replaced begins the next one, because its LSNs begin anew.
CHANGE: Columns = {
    "_op": "STRING",
    "_lsn": "BIGINT",
    "_commit_lsn": "BIGINT",
    "_committed_at": "TIMESTAMP",
    "_deleted": "BOOLEAN",
    "_before": "STRING",
    "_generation": "INT",
}
# What a version of a row has beside the row, in its history: from when to when it was valid, and was known to be (UTC; null: it
# still is), and whether it is the row as it is now.
HISTORY: Columns = {
    "valid_from": "TIMESTAMP",
    "valid_to": "TIMESTAMP",
    "known_from": "TIMESTAMP",
    "known_to": "TIMESTAMP",
    "is_current": "BOOLEAN",
}
# Of the change that a version comes from.
VERSION: Columns = {name: CHANGE[name] for name in ("_op", "_lsn", "_commit_lsn", "_committed_at", "_generation")}
# What orders the changes of one row, and by which of them a change is newer.
POSITION = ("_generation", "_commit_lsn", "_lsn")
# Rows from before there were generations have none.
FIRST_GENERATION = 1
# The generation of a change that comes from silver, as SQL; for DataFrames, see generation().
GENERATION = f"coalesce(_generation, {FIRST_GENERATION})"
# A record that failed validation.
QUARANTINE: Columns = {
    **PROVENANCE,
    "_reason": "STRING",
    "_key": "BINARY",
    "_value": "BINARY",
    "_run_id": "STRING",
}
# The names of the payload's fields that the contract does not name, as a JSON array; null: there are none.
UNKNOWN: Columns = {"_unknown": "STRING"}
# What a late row has beside those of silver: arrival less event time, and whether it was counted all the same.
LATE: Columns = {"_late_by": "INTERVAL DAY TO SECOND", "_counted": "BOOLEAN"}
# What a row of the merged view has beside the view's: its layer, whether it is final, and when the layer last wrote (UTC).
MERGED: Columns = {"_layer": "STRING", "_final": "BOOLEAN", "_as_of": "TIMESTAMP"}
# How fresh the layers of each view are: see :class:`lockstep.serving.merged.Freshness`.
FRESHNESS: Columns = {"view": "STRING", "final_until": "TIMESTAMP", "batch_at": "TIMESTAMP", "live_at": "TIMESTAMP"}
# How Spark writes a timestamp into JSON without losing its microseconds.
TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"


def log_columns(contract: "Contract") -> Columns:
    """The columns of a stream's log in silver."""
    return {**contract.columns, **PROVENANCE, **(CHANGE if contract.kind == "changes" else EVENT), **UNKNOWN}


def history_columns(contract: "Contract") -> Columns:
    """The columns of the history of a captured table."""
    return {**contract.columns, **HISTORY, **VERSION, **PROVENANCE}


def generation() -> "Column":
    """The generation of a change that comes from silver or from the parser."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col("_generation"), F.lit(FIRST_GENERATION))


def ddl(columns: Columns) -> str:
    """The columns as Spark DDL, such as ``page STRING, views BIGINT``."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def struct(columns: Columns) -> str:
    """The columns as the DDL of one struct, such as ``STRUCT<page: STRING, views: BIGINT>``."""
    return f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in columns.items())}>"
