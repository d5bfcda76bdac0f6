"""``ops.marts``: a row for each span of days that was built. Its record has what decides what is built next. Needs no Spark.

The record says up to which version of each source's ledger the marts know its rows, which days wait to be built, and why those
could not be built that were tried.
"""

from typing import TYPE_CHECKING

from lockstep.ledger.ops_table import OpsTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lockstep.settings import Settings

COLUMNS = {
    "start": "TIMESTAMP",
    "end": "TIMESTAMP",
    "built": "ARRAY<STRING>",
    "run_id": "STRING",
    "built_at": "TIMESTAMP",
    "warned": "ARRAY<STRING>",
}
TABLE = OpsTable("ops.marts", COLUMNS, "marts")


def failed(settings: "Settings") -> "Mapping[str, str]":
    """By days that could not be built, such as ``2026-11-19 to 2026-11-21``, which models and tests failed, and why."""
    found: Mapping[str, str] = TABLE.newest(settings).get("failed", {})
    return found
