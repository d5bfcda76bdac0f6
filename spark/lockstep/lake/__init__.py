"""The lake: where its tables are, how their logs are read, and the only code that writes rows to them."""

from lockstep.lake.log import Commit, commits, exists, newest_version, parse_commit
from lockstep.lake.paths import LAYERS, catalog_name, checkpoint, path
from lockstep.lake.spark_catalog import create, create_view, differences, drop, forget, register, registered, tables
from lockstep.lake.trim_log import trim
from lockstep.lake.writes import (
    WIDEN,
    Txn,
    append,
    append_record,
    has_columns,
    has_texts,
    is_small,
    last_transaction,
    merge,
    overwrite,
    read,
    read_as_now,
    replace,
    schema,
)

__all__ = [
    "LAYERS",
    "WIDEN",
    "Commit",
    "Txn",
    "append",
    "append_record",
    "catalog_name",
    "checkpoint",
    "commits",
    "create",
    "create_view",
    "differences",
    "drop",
    "exists",
    "forget",
    "has_columns",
    "has_texts",
    "is_small",
    "last_transaction",
    "merge",
    "newest_version",
    "overwrite",
    "parse_commit",
    "path",
    "read",
    "read_as_now",
    "register",
    "registered",
    "replace",
    "schema",
    "tables",
    "trim",
]
