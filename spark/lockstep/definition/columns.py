"""Columns as a mapping from name to Spark type: the columns that the platform adds to rows, and Spark's DDL for any of them."""

from collections.abc import Mapping

Columns = Mapping[str, str]

# Where a row of silver is from: its record's topic, partition and offset, and the record's Kafka timestamp (UTC).
PROVENANCE: Columns = {"_topic": "STRING", "_partition": "INT", "_offset": "BIGINT", "_arrival": "TIMESTAMP"}
# What a change of a table says beside the row: Debezium's operation (c, u, d, r, t), the LSNs of row and commit, when it was
# committed (UTC), whether it is a delete, and what an updated row was before, as JSON without its PII.
CHANGE: Columns = {
    "_op": "STRING",
    "_lsn": "BIGINT",
    "_commit_lsn": "BIGINT",
    "_committed_at": "TIMESTAMP",
    "_deleted": "BOOLEAN",
    "_before": "STRING",
}


def ddl(columns: Columns) -> str:
    """The columns as Spark DDL, such as ``page STRING, views BIGINT``."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def struct(columns: Columns) -> str:
    """The columns as the DDL of one struct, such as ``STRUCT<page: STRING, views: BIGINT>``."""
    return f"STRUCT<{', '.join(f'{name}: {kind}' for name, kind in columns.items())}>"
