"""The lake: where tables live, and the only code that writes Delta.

Every write carries a transaction id ``writer:table:generation`` with a rising number, so running it twice changes nothing,
and a JSON record in the commit's ``userMetadata``, so that rows and ledger are one commit, or neither.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from lockstep.definition.columns import Columns, ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

log = logging.getLogger(__name__)
LAYERS = ("bronze", "silver", "quarantine", "gold", "live", "late", "ops", "serving", "marts", "staging", "shadow")


# A database that only says that all the tables were registered since the server started.
_REGISTERED = "registered"


@dataclass(frozen=True)
class Txn:
    """The identity of one write: Delta skips a second commit of the same ``app`` with the same or a lower ``version``."""

    app: str
    version: int


@dataclass(frozen=True)
class Commit:
    """One commit of a Delta table, as its log says.

    Args:
        rows: how many rows it wrote (``numOutputRows``), 0 where it wrote none.
        size: the same in bytes.
        record: Lockstep's own record from ``userMetadata``; empty for commits of others (OPTIMIZE, VACUUM).
        files: per added file the statistics that Delta kept (``numRecords``, ``minValues``, ``maxValues``).
    """

    table: str
    version: int
    timestamp: int
    operation: str
    rows: int
    record: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Mapping[str, Any], ...] = ()
    size: int = 0


def path(settings: "Settings", table: str) -> str:
    """Where ``layer.name`` lives: ``<lake>/<layer>/<name>``."""
    layer, _, name = table.partition(".")
    if layer not in LAYERS or not name:
        raise ValueError(f"{table!r} is not a table of the lake: it must be <layer>.<name>, with a layer of {LAYERS}")
    return f"{settings.lake.rstrip('/')}/{layer}/{name}"


def checkpoint(settings: "Settings", query: str, generation: int) -> str:
    """Where a live query keeps its offsets and state: ``<lake>/_checkpoints/<query>/<generation>``."""
    return f"{settings.lake.rstrip('/')}/_checkpoints/{query}/{generation}"


def create(
    spark: "SparkSession",
    settings: "Settings",
    table: str,
    columns: Columns,
    partitioned_by: str = "",
    properties: Mapping[str, str] | None = None,
) -> None:
    """Create the table where it is missing."""
    layout = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in (properties or {}).items())
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table} ({ddl(columns)}) USING delta {layout} LOCATION '{path(settings, table)}'"
        + (f" TBLPROPERTIES ({pairs})" if pairs else "")
    )


def tables(settings: "Settings") -> list[str]:
    """All tables of the lake, as ``layer.name``, sorted."""
    filesystem, root = fs.FileSystem.from_uri(settings.lake)
    selectors = [fs.FileSelector(f"{root}/{layer}", allow_not_found=True) for layer in LAYERS]
    found = (
        f"{layer}.{info.base_name}"
        for layer, selector in zip(LAYERS, selectors, strict=True)
        for info in filesystem.get_file_info(selector)
    )
    return sorted(table for table in found if exists(settings, table))


def registered(spark: "SparkSession") -> bool:
    """Whether the tables were made known since the server started."""
    return bool(spark.catalog.databaseExists(_REGISTERED))


def register(spark: "SparkSession", settings: "Settings") -> bool:
    """Make the lake's tables known by name, where the server has just started: its catalog is derived from the lake.

    A table whose log is broken stays unknown, and keeps nobody from the others.

    Returns:
        Whether they were not known yet.
    """
    from pyspark.errors import PySparkException

    if registered(spark):
        return False
    for layer in LAYERS:
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {layer}")
    for table in tables(settings):
        try:
            spark.sql(f"CREATE TABLE IF NOT EXISTS {table} USING delta LOCATION '{path(settings, table)}'")
        except PySparkException as error:
            reason = str(error).partition("\n")[0]
            log.error("%s cannot be read, see `lockstep ledger verify`: %s", table, reason)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {_REGISTERED}")
    return True


def drop(spark: "SparkSession", settings: "Settings", table: str) -> None:
    """Remove the table, its files and its log; nothing happens where there is none."""
    filesystem, root = fs.FileSystem.from_uri(path(settings, table))
    if filesystem.get_file_info(root).type != fs.FileType.Directory:
        return
    if spark.catalog.databaseExists(table.partition(".")[0]):
        spark.sql(f"DROP TABLE IF EXISTS {table}")
    while filesystem.get_file_info(root).type == fs.FileType.Directory:
        # Another one, such as VACUUM, may take a file away at the same time.
        with suppress(FileNotFoundError):
            filesystem.delete_dir(root)


def exists(settings: "Settings", table: str) -> bool:
    """Whether the table has a log."""
    return bool(_versions(settings, table))


def read(spark: "SparkSession", settings: "Settings", table: str, version: int | None = None) -> "DataFrame":
    """The table's rows, now or as of a version."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path(settings, table))


def append(df: "DataFrame", settings: "Settings", table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Append the rows and the record in one commit."""
    _writer(df, txn, record).mode("append").save(path(settings, table))


def replace(df: "DataFrame", settings: "Settings", table: str, where: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Put the rows in the place of those that match ``where``, in one commit. Every row of ``df`` must match it too."""
    writer = _writer(df, txn, record).option("replaceWhere", where)
    writer.mode("overwrite").save(path(settings, table))


def overwrite(df: "DataFrame", settings: "Settings", table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """Put the rows, and their columns, in the place of all that the table holds, in one commit."""
    _writer(df, txn, record).mode("overwrite").option("overwriteSchema", "true").save(path(settings, table))


def _writer(df: "DataFrame", txn: Txn, record: Mapping[str, Any]) -> Any:
    return (
        df.write.format("delta")
        .option("txnAppId", txn.app)
        .option("txnVersion", txn.version)
        .option("userMetadata", json.dumps(record, sort_keys=True))
    )


def merge(
    df: "DataFrame",
    settings: "Settings",
    table: str,
    on: str,
    newer: str,
    txn: Txn,
    record: Mapping[str, Any],
) -> None:
    """Upsert the rows (alias ``s``) into the table (alias ``t``): insert where nothing matches ``on``, update where ``newer``.

    The transaction id of a MERGE is taken from the session, so the session must belong to this writer alone.
    """
    spark = df.sparkSession
    view = f"merge_{txn.app}_{txn.version}".replace(":", "_").replace(".", "_")
    conf = {
        "spark.databricks.delta.write.txnAppId": txn.app,
        "spark.databricks.delta.write.txnVersion": str(txn.version),
        "spark.databricks.delta.commitInfo.userMetadata": json.dumps(record, sort_keys=True),
    }
    df.createOrReplaceTempView(view)
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        spark.sql(
            f"MERGE INTO delta.`{path(settings, table)}` t USING {view} s ON {on} "
            f"WHEN MATCHED AND {newer} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
    finally:
        for key in conf:
            spark.conf.unset(key)
        spark.catalog.dropTempView(view)


def commits(settings: "Settings", table: str) -> Iterator[Commit]:
    """The table's commits, newest first, straight from the JSON files of its log; no Spark needed."""
    filesystem, root = fs.FileSystem.from_uri(path(settings, table))
    for version in reversed(_versions(settings, table)):
        with filesystem.open_input_stream(f"{root}/_delta_log/{version:020d}.json") as stream:
            yield parse_commit(table, version, stream.read().decode())


def _versions(settings: "Settings", table: str) -> list[int]:
    filesystem, root = fs.FileSystem.from_uri(path(settings, table))
    selector = fs.FileSelector(f"{root}/_delta_log", allow_not_found=True)
    names = (info.base_name for info in filesystem.get_file_info(selector))
    return sorted(int(name[:20]) for name in names if len(name) == 25 and name.endswith(".json"))


def parse_commit(table: str, version: int, text: str) -> Commit:
    """Read one file of a Delta log (one JSON action a line; Delta transaction protocol, "Delta Log Entries")."""
    actions: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    stats = (json.loads(a["add"].get("stats") or "{}") for a in actions if "add" in a)
    return Commit(
        table=table,
        version=version,
        timestamp=info.get("timestamp", 0),
        operation=info.get("operation", ""),
        rows=int(info.get("operationMetrics", {}).get("numOutputRows", 0)),
        record=_record(info.get("userMetadata")),
        files=tuple(s for s in stats if s),
        size=int(info.get("operationMetrics", {}).get("numOutputBytes", 0)),
    )


def _record(text: str | None) -> Mapping[str, Any]:
    try:
        record = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}
