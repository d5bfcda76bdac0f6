"""Erased records: their position and their times stay, so that the ledger holds, and nothing else does. Pure.

The broker may still have what was erased, until retention or compaction takes it. So whoever reads a topic leaves it out.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lockstep.contracts.contract import ERASED
from lockstep.ledger.ranges import where_offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.control.erased import Offsets

# Of a record that was erased, by column of bronze (Spark SQL).
EMPTY = {
    "key": "CAST(NULL AS BINARY)",
    "headers": f"array(named_struct('key', '{ERASED}', 'value', CAST('1' AS BINARY)))",
    "value": "CAST(NULL AS BINARY)",
}


def redacted(rows: "DataFrame", offsets: "Offsets") -> "DataFrame":
    """Records of one topic in bronze's columns, without what was erased at these offsets of its partitions."""
    if not offsets:
        return rows
    where = where_offsets(offsets)
    return rows.selectExpr(
        *(
            f"CASE WHEN {where} THEN {EMPTY[name]} ELSE {name} END AS {name}" if name in EMPTY else name
            for name in rows.columns
        )
    )


def redacted_few(rows: pa.Table, offsets: "Mapping[str, Offsets]") -> pa.Table:
    """The same of a few records of several topics in Arrow, with the offsets by topic."""
    if not offsets:
        return rows
    gone = {(topic, p, o) for topic, of_topic in offsets.items() for p, of in of_topic.items() for o in of}
    empty = {"key": None, "headers": [{"key": ERASED, "value": b"1"}], "value": None}
    found = [
        row | empty if (row["topic"], row["partition"], row["offset"]) in gone else row for row in rows.to_pylist()
    ]
    return pa.Table.from_pylist(found, rows.schema)
