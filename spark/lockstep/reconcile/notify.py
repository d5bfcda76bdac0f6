"""Tell others what reconciliation found: corrections of live rows, and alerts. Each goes to a topic and a table of its own.

The topic first, at least once, with an id that is the same on every run; then the table, which remembers what was told.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.definition import View
from lockstep.definition.alerting import Delivery
from lockstep.definition.columns import Columns, ddl
from lockstep.reconcile.causes import Difference
from lockstep.sinks.kafka_sink import KafkaSink, KafkaSinkConfig
from lockstep.sinks.message import alert_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

CORRECTIONS = "ops.corrections"
ALERTS = "ops.alerts"
_COLUMNS: dict[str, Columns] = {
    CORRECTIONS: {
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
    ALERTS: {
        "alert_id": "STRING",
        "kind": "STRING",
        "subject": "STRING",
        "text": "STRING",
        "run_id": "STRING",
        "at": "TIMESTAMP",
    },
}
_SINKS = {
    CORRECTIONS: KafkaSinkConfig("reconcile.corrections", "corrections", "key", Delivery.AT_LEAST_ONCE),
    ALERTS: KafkaSinkConfig("reconcile.alerts", "alerts", "subject", Delivery.AT_LEAST_ONCE),
}


def corrections(
    spark: "SparkSession", settings: "Settings", view: View, found: Iterable[Difference], run_id: str
) -> int:
    """Emit the row that holds in the place of each live row that was wrong; returns how many had not been told before.

    ``live`` and ``batch`` are JSON; no ``batch``: there should be no row.
    """
    now = datetime.now(UTC)
    rows = [
        {
            "alert_id": alert_id(view.name, one.window_start, one.key, one.live, one.batch),
            "view": view.name,
            "window_start": one.window_start,
            "key": one.key,
            "live": one.live,
            "batch": one.batch,
            "cause": one.live_cause or None,
            "run_id": run_id,
            "at": now,
        }
        for one in found
        if one.corrected
    ]
    return _tell(spark, settings, CORRECTIONS, rows)


def alert(spark: "SparkSession", settings: "Settings", view: View, since: datetime, text: str, run_id: str) -> int:
    """Raise the alarm, once, that the view's layers differ from a window on (its start, UTC) for no known reason."""
    row = {
        "alert_id": alert_id("reconcile", view.name, since),
        "kind": "unexplained difference",
        "subject": view.name,
        "text": text,
        "run_id": run_id,
        "at": datetime.now(UTC),
    }
    return _tell(spark, settings, ALERTS, [row])


def _tell(spark: "SparkSession", settings: "Settings", table: str, rows: list[dict[str, Any]]) -> int:
    if not rows:
        return 0
    if not lake.exists(settings, table):
        lake.create(spark, settings, table, _COLUMNS[table])
    told = {row["alert_id"] for row in lake.read(spark, settings, table).select("alert_id").collect()}
    new = [row for row in rows if row["alert_id"] not in told]
    if new:
        seq = next((c.record["seq"] for c in lake.commits(settings, table) if "seq" in c.record), 0) + 1
        KafkaSink(_SINKS[table])(new, seq)
        record = {"writer": "reconcile", "seq": seq}
        frame = spark.createDataFrame([tuple(row.values()) for row in new], ddl(_COLUMNS[table]))
        lake.append(frame, settings, table, ledger.txn(table, record), record)
    return len(new)
