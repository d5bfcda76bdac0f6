"""How the live queries are doing: one row for each query every few seconds, in ``ops.live_progress``."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.definition.columns import ddl
from lockstep.lake import Txn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

TABLE = "ops.live_progress"
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
# Many small commits, and nobody asks how they came about.
PROPERTIES = {
    "delta.logRetentionDuration": "interval 1 days",
    # Delta refuses a log that is kept for less long than removed files are.
    "delta.deletedFileRetentionDuration": "interval 1 days",
    "delta.checkpointInterval": "100",
}


@dataclass(frozen=True)
class Progress:
    """What a query said of its last micro-batch.

    Args:
        at: when the batch began (UTC).
        input_rows: offsets that it took; ``rows_per_second``: in a second of its own time.
        lag: offsets that its topics held beyond the batch.
        watermark: UTC; None before there is one.
        state_rows: over all stateful operators, as of the last count; None before the first.
        state_bytes: of memory.
        dropped_rows: rows that the engine left out as too late, which must be none.
        failures: how often in a row the query has failed; ``error`` says why the last time.
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


def parse(
    query: str,
    generation: int,
    said: Mapping[str, Any] | None,
    failures: int = 0,
    error: str | None = None,
    state_rows: int | None = None,
) -> Progress:
    """A query's progress out of Spark's own JSON (``lastProgress``), or the lack of it. Pure."""
    if said is None:
        return Progress(query, generation, failures=failures, error=error)
    operators = said.get("stateOperators", [])
    watermark = said.get("eventTime", {}).get("watermark")
    taken, milliseconds = sum(map(_taken, said["sources"])), said.get("durationMs", {}).get("triggerExecution", 0)
    return Progress(
        query=query,
        generation=generation,
        batch=said["batchId"],
        at=datetime.fromisoformat(said["timestamp"]),
        input_rows=taken,
        rows_per_second=1000.0 * taken / milliseconds if milliseconds else 0.0,
        batch_ms=milliseconds,
        lag=sum(_behind(source) for source in said["sources"]),
        # Spark says 1970 before there is one.
        watermark=datetime.fromisoformat(watermark) if watermark and not watermark.startswith("1970-01-01") else None,
        # Not Spark's own number: to track that makes every write to the state a read too.
        state_rows=state_rows,
        state_bytes=sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        dropped_rows=sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        failures=failures,
        error=error,
    )


def _taken(source: Mapping[str, Any]) -> int:
    """Offsets that the batch took. Spark's own count has rows twice where a batch is looked at twice."""
    start, end = _offsets(source.get("startOffset")), _offsets(source.get("endOffset"))
    if not start:
        return max(int(source.get("numInputRows", 0)), 0)
    return _difference(end, start)


def _behind(source: Mapping[str, Any]) -> int:
    latest, end = _offsets(source.get("latestOffset")), _offsets(source.get("endOffset"))
    return _difference(latest, end)


def _difference(later: Mapping[str, Mapping[str, int]], earlier: Mapping[str, Mapping[str, int]]) -> int:
    return sum(
        max(last - earlier.get(topic, {}).get(partition, 0), 0)
        for topic, partitions in later.items()
        for partition, last in partitions.items()
    )


def _offsets(said: Any) -> dict[str, dict[str, int]]:
    found = json.loads(said) if isinstance(said, str) else said
    return found if isinstance(found, dict) else {}


def publish(spark: "SparkSession", settings: "Settings", rows: list[Progress]) -> None:
    """Append what the queries said, in one commit, whose record has it too: so it can be read without Spark."""
    before = next((int(c.record["seq"]) for c in lake.commits(settings, TABLE) if "progress" in c.record), 0)
    said = [{name: _plain(value) for name, value in asdict(row).items()} for row in rows]
    record = {"writer": "live", "seq": before + 1, "progress": {one["query"]: one for one in said}}
    frame = spark.createDataFrame([tuple(asdict(row).values()) for row in rows], ddl(COLUMNS))
    lake.create(spark, settings, TABLE, COLUMNS, properties=PROPERTIES)
    lake.append(frame.coalesce(1), settings, TABLE, Txn(f"live:{TABLE}:1", before + 1), record)


def latest(settings: "Settings") -> dict[str, dict[str, Any]]:
    """What each query said last, by name; times are ISO (UTC). Empty before the service has published."""
    return next((dict(c.record["progress"]) for c in lake.commits(settings, TABLE) if "progress" in c.record), {})


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat(timespec="milliseconds") if isinstance(value, datetime) else value
