"""Publish the results of reconciliation: corrections of live rows, and alerts. Each has a topic and a table of its own.

They go to the topic first, at least once, with an id that is the same on every run. Then they go to the table, so that the
next run knows what is published.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.definition import View
from lockstep.definition.alerting import Delivery
from lockstep.ledger.ops_table import OpsTable
from lockstep.reconcile.difference import Difference
from lockstep.sinks import kafka_sink
from lockstep.sinks.kafka_sink import KafkaSink, KafkaSinkConfig
from lockstep.sinks.message import alert_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

CORRECTIONS = OpsTable(
    "ops.corrections",
    {
        "alert_id": "STRING",
        "view": "STRING",
        "window_start": "TIMESTAMP",
        "key": "STRING",
        "live": "STRING",
        "batch": "STRING",
        "cause": "STRING",
        "run_id": "STRING",
        "at": "TIMESTAMP",
    },
    writer="reconcile",
)
ALERTS = OpsTable(
    "ops.alerts",
    {
        "alert_id": "STRING",
        "kind": "STRING",
        "subject": "STRING",
        "text": "STRING",
        "run_id": "STRING",
        "at": "TIMESTAMP",
    },
    writer="reconcile",
)
_SINKS = {
    CORRECTIONS.name: KafkaSinkConfig("reconcile.corrections", kafka_sink.CORRECTIONS, "key", Delivery.AT_LEAST_ONCE),
    ALERTS.name: KafkaSinkConfig("reconcile.alerts", kafka_sink.ALERTS, "subject", Delivery.AT_LEAST_ONCE),
}


def publish_corrections(
    spark: "SparkSession", settings: "Settings", view: View, differences: Iterable[Difference], run_id: str
) -> int:
    """Publish the correct row for each live row that is wrong. Returns how many corrections are new.

    ``live`` and ``batch`` are JSON; no ``batch``: there should be no row.
    """
    now = datetime.now(UTC)
    rows = [
        {
            "alert_id": alert_id(view.name, d.window_start, d.key, d.live.row, d.batch.row),
            "view": view.name,
            "window_start": d.window_start,
            "key": d.key,
            "live": d.live.row,
            "batch": d.batch.row,
            "cause": d.live.cause.value if d.live.cause else None,
            "run_id": run_id,
            "at": now,
        }
        for d in differences
        if d.corrected
    ]
    return _publish(spark, settings, CORRECTIONS, rows, run_id)


def publish_alert(
    spark: "SparkSession", settings: "Settings", view: View, since: datetime, text: str, run_id: str
) -> int:
    """Alert, once, that the view's layers differ from a window on for no known cause.

    Args:
        since: the start of the window (UTC).
    """
    row = {
        "alert_id": alert_id("reconcile", view.name, since),
        "kind": "unexplained difference",
        "subject": view.name,
        "text": text,
        "run_id": run_id,
        "at": datetime.now(UTC),
    }
    return _publish(spark, settings, ALERTS, [row], run_id)


def _publish(
    spark: "SparkSession", settings: "Settings", table: OpsTable, rows: list[dict[str, Any]], run_id: str
) -> int:
    """Publish the rows whose id is not in the table yet; returns how many."""
    if not rows:
        return 0
    with table.writing(spark, settings, run_id) as commit:
        ids = spark.createDataFrame([(row["alert_id"],) for row in rows], "alert_id STRING")
        known = lake.read(spark, settings, table.name).join(ids, "alert_id", "left_semi").select("alert_id").collect()
        published = {row["alert_id"] for row in known}
        new = [row for row in rows if row["alert_id"] not in published]
        if new:
            KafkaSink(_SINKS[table.name])(new, commit.seq)
            commit.append([tuple(row.values()) for row in new], {})
    return len(new)
