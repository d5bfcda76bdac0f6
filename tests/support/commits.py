"""Builders of Delta logs and ledger entries: what the platform reads of a table without Spark."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lockstep import lake, ledger
from lockstep.ledger.ranges import Range
from lockstep.settings import Settings

Spans = Mapping[int, tuple[int, int]]


def ranges(spans: Spans, topic: str = "page_views", topic_id: str = "id-1") -> list[Range]:
    """The ranges of one topic: ``{partition: (start, end)}``."""
    return [Range(topic, topic_id, partition, start, end) for partition, (start, end) in spans.items()]


def ledger_record(taken: Iterable[Range], seq: int = 1, writer: str = "test", **more: Any) -> dict[str, Any]:
    """The record of a commit that took these ranges, as the product itself writes it."""
    return ledger.record(writer, None, "run-1", taken, **more) | {"seq": seq}


def entry(taken: Iterable[Range], table: str = "bronze.page_views", seq: int = 1, **more: Any) -> ledger.Entry:
    """A ledger entry as it is read back; ``more`` sets its other fields. It has a row for each offset, unless ``rows`` says."""
    taken = tuple(taken)
    fields = {
        "version": seq,
        "run_id": "run-1",
        "code_version": "code",
        "rows": sum(r.size for r in taken),
        "counts": {},
        "totals": {},
        "committed_at": 0,
    }
    return ledger.Entry(table=table, seq=seq, ranges=taken, **(fields | more))


def statistics(rows: int, low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """What Delta knows of one data file: its rows, and the lowest and highest values of some columns."""
    return {"numRecords": rows, "minValues": dict(low), "maxValues": dict(high)}


def commit_text(
    record: Mapping[str, Any] | str,
    *,
    rows: int = 0,
    size: int = 0,
    timestamp: int = 0,
    operation: str = "WRITE",
    files: Iterable[Mapping[str, Any]] = (),
) -> str:
    """One file of a Delta log: the commit's own line, and a line for each file that it adds.

    Args:
        record: the platform's record, or any text in its place.
        size: bytes written.
        timestamp: milliseconds since the epoch.
        files: the :func:`statistics` of each file.
    """
    info = {
        "timestamp": timestamp,
        "operation": operation,
        "operationMetrics": {"numOutputRows": str(rows), "numOutputBytes": str(size)},
        "userMetadata": record if isinstance(record, str) else json.dumps(record),
    }
    adds = [
        {"add": {"path": f"part-{n}.parquet", "size": 1, "stats": json.dumps(stats)}} for n, stats in enumerate(files)
    ]
    return "\n".join(json.dumps(action) for action in [{"commitInfo": info}, *adds])


def write_commit(
    settings: Settings, table: str, version: int, record: Mapping[str, Any] | str = "", **fields: Any
) -> None:
    """Add a commit to the table's log on the local disk; ``fields`` as in :func:`commit_text`."""
    log = Path(lake.path(settings, table)) / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020d}.json").write_text(commit_text(record, **fields))
