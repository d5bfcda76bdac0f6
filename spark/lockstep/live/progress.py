"""The progress of the live queries: one row per query every few seconds, in ``ops.live_progress``."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from lockstep.ledger.ops_table import OpsTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

COLUMNS = {
    "query": "STRING",
    "generation": "INT",
    "batch": "BIGINT",
    "at": "TIMESTAMP",
    "input_rows": "BIGINT",
    "rows_per_second": "DOUBLE",
    "batch_ms": "BIGINT",
    "lag": "BIGINT",
    "watermark": "TIMESTAMP",
    "state_rows": "BIGINT",
    "state_bytes": "BIGINT",
    "dropped_rows": "BIGINT",
    "failures": "INT",
    "error": "STRING",
}
# The table gets a small commit every few seconds, and nobody reads its old versions.
PROPERTIES = {
    "delta.logRetentionDuration": "interval 1 days",
    # Delta refuses a log retention that is shorter than the retention of removed files.
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "100",
}
TABLE = OpsTable("ops.live_progress", COLUMNS, "live", PROPERTIES)


@dataclass(frozen=True)
class Progress:
    """A query's last micro-batch, as Spark reported it.

    Args:
        at: when the batch began (UTC).
        input_rows: the offsets that the batch read.
        rows_per_second: ``input_rows`` per second of the batch's duration.
        lag: the offsets that its topics had beyond the batch.
        watermark: UTC; None before there is one.
        state_rows: the sum over all stateful operators at the last count; None before the first count.
        state_bytes: the memory of the state stores.
        dropped_rows: the rows that Spark has dropped as too late since the service started; it must never drop any.
        failures: how often in a row the query has failed.
        error: why it failed the last time.
    """

    query: str
    generation: int
    batch: int | None = None
    at: datetime | None = None
    input_rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: int = 0
    watermark: datetime | None = None
    state_rows: int | None = None
    state_bytes: int = 0
    dropped_rows: int = 0
    failures: int = 0
    error: str | None = None


_PROGRESS = TypeAdapter(dict[str, Progress])


def parse(
    query: str,
    generation: int,
    last_progress: Mapping[str, Any] | None,
    topics: Collection[str],
    failures: int = 0,
    error: str | None = None,
    state_rows: int | None = None,
    dropped_rows: int = 0,
) -> Progress:
    """Turn Spark's own JSON (``lastProgress``; None before the first batch) into a view's progress. Pure.

    Args:
        topics: what the view reads. Its job may read more, and what concerns the whole job is the same for all its views.
    """
    if last_progress is None:
        return Progress(query, generation, failures=failures, error=error, dropped_rows=dropped_rows)
    operators = last_progress.get("stateOperators", [])
    watermark = last_progress.get("eventTime", {}).get("watermark")
    input_rows = _input_rows(last_progress["sources"], topics)
    milliseconds = last_progress.get("durationMs", {}).get("triggerExecution", 0)
    return Progress(
        query=query,
        generation=generation,
        batch=last_progress["batchId"],
        at=datetime.fromisoformat(last_progress["timestamp"]),
        input_rows=input_rows,
        rows_per_second=1000.0 * input_rows / milliseconds if milliseconds else 0.0,
        batch_ms=milliseconds,
        lag=sum(
            _difference(_offsets(source.get("latestOffset"), topics), _offsets(source.get("endOffset"), topics))
            for source in last_progress["sources"]
        ),
        # Spark reports 1970 before there is a watermark.
        watermark=datetime.fromisoformat(watermark) if watermark and not watermark.startswith("1970-01-01") else None,
        # Not Spark's own number: when Spark tracks it, every write to the state costs a read too.
        state_rows=state_rows,
        state_bytes=sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        dropped_rows=dropped_rows,
        failures=failures,
        error=error,
    )


def rows_dropped(report: Mapping[str, Any]) -> int:
    """The rows that one micro-batch has dropped as too late. Spark reports it of this batch alone."""
    return sum(operator.get("numRowsDroppedByWatermark", 0) for operator in report.get("stateOperators", []))


def _input_rows(sources: Iterable[Mapping[str, Any]], topics: Collection[str]) -> int:
    """The offsets that the batch read. Spark's own count has a row twice if the batch reads its input twice."""
    rows = 0
    for source in sources:
        start, end = (_offsets(source.get(name), topics) for name in ("startOffset", "endOffset"))
        if end and not start:
            # Before its first batch, a source has no start.
            rows += max(int(source.get("numInputRows", 0)), 0)
        else:
            rows += _difference(end, start)
    return rows


def _difference(later: Mapping[str, Mapping[str, int]], earlier: Mapping[str, Mapping[str, int]]) -> int:
    return sum(
        max(last - earlier.get(topic, {}).get(partition, 0), 0)
        for topic, partitions in later.items()
        for partition, last in partitions.items()
    )


def _offsets(reported: Any, topics: Collection[str]) -> dict[str, dict[str, int]]:
    offsets = json.loads(reported) if isinstance(reported, str) else reported
    return {topic: ends for topic, ends in offsets.items() if topic in topics} if isinstance(offsets, dict) else {}


def publish(spark: "SparkSession", settings: "Settings", rows: list[Progress]) -> None:
    """Append the queries' progress in one commit. The commit's record has it too, so it can be read without Spark."""
    with TABLE.writing(spark, settings, "live") as commit:
        record = {"progress": {row.query: _as_json(row) for row in rows}}
        commit.append([tuple(asdict(row).values()) for row in rows], record)


def latest(settings: "Settings") -> dict[str, Progress]:
    """The last published progress of each query, by its name. Empty before the service has published."""
    return _PROGRESS.validate_python(TABLE.newest(settings).get("progress", {}))


def _as_json(progress: Progress) -> dict[str, Any]:
    return {
        name: value.astimezone(UTC).isoformat(timespec="milliseconds") if isinstance(value, datetime) else value
        for name, value in asdict(progress).items()
    }
