"""The logs of the lake's tables, read without Spark.

Only the JSON files of a Delta log are read: only they have the platform's records (``commitInfo``), and the statistics of the
files that a commit added. Deletion vectors, column mapping and checkpoints of the log do not matter for these.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from lockstep.lake.paths import path

if TYPE_CHECKING:
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Commit:
    """One commit of a Delta table, as its log says.

    Args:
        timestamp: when it was made (milliseconds, UTC).
        operation: such as ``WRITE``, ``MERGE`` or ``OPTIMIZE``.
        rows: the number of rows that it wrote (``numOutputRows``); 0 where it wrote none.
        record: the platform's record from ``userMetadata``; empty for commits of others (OPTIMIZE, VACUUM).
        files: the statistics that Delta kept of each added file (``numRecords``, ``minValues``, ``maxValues``).
        size: the number of bytes that it wrote.
    """

    table: str
    version: int
    timestamp: int
    operation: str
    rows: int
    record: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Mapping[str, Any], ...] = ()
    size: int = 0


def exists(settings: "Settings", table: str) -> bool:
    """Whether the table has a log."""
    return bool(_versions(settings, table))


def commits(settings: "Settings", table: str) -> Iterator[Commit]:
    """The table's commits, newest first."""
    filesystem, root = fs.FileSystem.from_uri(path(settings, table))
    for version in reversed(_versions(settings, table)):
        with filesystem.open_input_stream(f"{root}/_delta_log/{version:020d}.json") as stream:
            yield parse_commit(table, version, stream.read().decode())


def parse_commit(table: str, version: int, text: str) -> Commit:
    """Read one file of a Delta log (one JSON action a line; Delta transaction protocol, "Delta Log Entries")."""
    actions: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    metrics = info.get("operationMetrics", {})
    added = [a["add"] for a in actions if "add" in a]
    stats = (json.loads(add.get("stats") or "{}") for add in added)
    return Commit(
        table=table,
        version=version,
        timestamp=info.get("timestamp", 0),
        operation=info.get("operation", ""),
        rows=_rows(metrics),
        record=_record(info.get("userMetadata")),
        files=tuple(s for s in stats if s),
        size=int(metrics.get("numOutputBytes", sum(add["size"] for add in added))),
    )


def _rows(metrics: Mapping[str, Any]) -> int:
    # Spark's name, and those of delta-rs for a MERGE and for an append.
    names = ("numOutputRows", "num_output_rows", "num_added_rows")
    return next((int(metrics[name]) for name in names if name in metrics), 0)


def _versions(settings: "Settings", table: str) -> list[int]:
    filesystem, root = fs.FileSystem.from_uri(path(settings, table))
    selector = fs.FileSelector(f"{root}/_delta_log", allow_not_found=True)
    names = (info.base_name for info in filesystem.get_file_info(selector))
    return sorted(int(name[:20]) for name in names if len(name) == 25 and name.endswith(".json"))


def _record(text: str | None) -> Mapping[str, Any]:
    try:
        record = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}
