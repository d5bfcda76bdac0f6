"""Find rows of quarantine, and send them to their topic again.

The log says what was re-driven: such a record has the header :data:`~lockstep.redrive.rows.HEADER`. All rows of a command are one
Kafka transaction. Before it begins, the transaction of a command that died is ended, and the log is read to its end. So a row is
sent once, however often a command is repeated, and wherever it was killed.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import KafkaException, Producer
from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.tables import Tables
from lockstep.errors import LockstepError
from lockstep.ingest import bronze
from lockstep.ingest.consumer import SCHEMA
from lockstep.ingest.offsets import topic_offsets
from lockstep.kafka_clients import confluent_config, produce
from lockstep.ledger.planning import plan
from lockstep.ledger.ranges import size
from lockstep.redrive.rows import HEADER, Place, RedriveRefused, Row, origin, place_of
from lockstep.refine.parse import parse
from lockstep.refine.writers import writers_of
from lockstep.session import to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

_TIMEOUT_SECONDS = 30.0
# Bronze's newest offsets, of which no command needs more at once.
_ALL = 2**62
# A message that names more is not read.
_NAMED = 5


class RedriveFailed(LockstepError):
    """Kafka did not take the rows. Repeating the command sends what is missing, and nothing twice."""


@dataclass(frozen=True)
class Redriven:
    """What a command has done: the rows that it sent, and those that were sent before."""

    sent: tuple[Place, ...]
    before: tuple[Place, ...]


def rows(
    spark: "SparkSession",
    settings: "Settings",
    contract: "Contract",
    reason: str | None = None,
    places: Iterable[Place] = (),
    limit: int | None = None,
) -> list[Row]:
    """Rows of the stream's quarantine, the newest first.

    Args:
        reason: only those with this reason.
        places: only these; none: all.
    """
    tables = Tables.of(contract)
    if not lake.exists(settings, tables.quarantine):
        return []
    found = lake.read(spark, settings, tables.quarantine)
    if reason is not None:
        found = found.where(F.col("_reason") == reason)
    if places := [*places]:
        wanted = spark.createDataFrame(places, "_partition INT, _offset BIGINT")
        found = found.join(wanted, ["_partition", "_offset"], "left_semi")
    found = found.orderBy(F.desc("_arrival"), "_partition", F.desc("_offset"))
    if limit is not None:
        found = found.limit(limit)
    raw = lake.read(spark, settings, tables.bronze).select(
        F.col("partition").alias("_partition"), F.col("offset").alias("_offset"), "headers"
    )
    named = found.join(raw, ["_partition", "_offset"], "left").orderBy(
        F.desc("_arrival"), "_partition", F.desc("_offset")
    )
    return [
        Row(
            row["_partition"],
            row["_offset"],
            row["_arrival"],
            row["_reason"],
            row["_key"] and bytes(row["_key"]),
            None if row["_value"] is None else bytes(row["_value"]),
            tuple((h["key"], None if h["value"] is None else bytes(h["value"])) for h in row["headers"] or ()),
        )
        for row in named.collect()
    ]


def redriven(spark: "SparkSession", settings: "Settings", contract: "Contract") -> set[Place]:
    """The places of all rows that were re-driven: as bronze has them, and after it as the topic has them."""
    newest = ledger.latest(settings, Tables.of(contract).bronze)
    log = topic_offsets(settings, contract.topic, newest.epochs if newest else {})
    ranges = plan(newest.ranges if newest else (), log, _ALL)
    found = _origins(lake.read(spark, settings, Tables.of(contract).bronze), contract) if newest else set()
    if size(ranges):
        new = bronze.read(spark, settings, ranges)
        found |= _origins(to_dataframe(spark, new) if isinstance(new, pa.Table) else new, contract)
    return found


def _origins(records: "DataFrame", contract: "Contract") -> set[Place]:
    marked = F.filter("headers", lambda header: header["key"] == HEADER)
    values = records.select(F.get(marked, F.lit(0))["value"].alias("origin")).where("origin IS NOT NULL").collect()
    return {place for row in values if (place := place_of(contract, bytes(row["origin"])))}


def redrive(
    spark: "SparkSession", settings: "Settings", contract: "Contract", values: Mapping[Row, bytes | None], by: str
) -> Redriven:
    """Send rows to their topic again, each with a value, its key, its partition and its headers. One that was sent before is not.

    Args:
        values: by row, what is sent for it.
        by: who asks, for the lease.

    Raises:
        RedriveRefused: the stream has changes of a table, or a row would go to quarantine again. Nothing was sent.
        RedriveFailed: Kafka did not take them.
    """
    if contract.kind == "changes":
        raise RedriveRefused(
            f"{contract.name} has the changes of a table: sent again, an old change would come after newer ones. Correct the row "
            "in its table, or the contract, and then replay silver: `lockstep replay plan`."
        )
    with lease(settings, f"redrive.{contract.name}", by):
        producer = _open(settings, contract)
        done = redriven(spark, settings, contract)
        missing = {row: value for row, value in values.items() if row.place not in done}
        _check(spark, settings, contract, missing)
        if missing:
            _send(producer, contract, missing)
        before = tuple(row.place for row in values if row.place in done)
        return Redriven(tuple(row.place for row in missing), before)


def _open(settings: "Settings", contract: "Contract") -> Producer:
    own = {
        "acks": "all",
        "enable.idempotence": True,
        "transactional.id": f"lockstep.redrive.{contract.name}",
        "transaction.timeout.ms": int(_TIMEOUT_SECONDS * 1000),
        "log_level": 0,
    }
    producer = Producer(confluent_config(settings) | own)
    try:
        # Ends the transaction of a command that died: after this, the log tells what was sent.
        producer.init_transactions(_TIMEOUT_SECONDS)
    except KafkaException as error:
        raise RedriveFailed(f"Kafka begins no transaction for {contract.topic} ({error}). Nothing was sent.") from error
    return producer


def _check(
    spark: "SparkSession", settings: "Settings", contract: "Contract", values: Mapping[Row, bytes | None]
) -> None:
    now = datetime.now(UTC)
    records = [
        {
            "topic": contract.topic,
            "partition": row.partition,
            "offset": row.offset,
            "timestamp": now,
            "timestamp_type": 0,
            "key": row.key,
            "headers": None,
            "value": value,
        }
        for row, value in values.items()
    ]
    if not records:
        return
    writers = writers_of(settings, contract, values.values())
    parsed = parse(to_dataframe(spark, pa.Table.from_pylist(records, SCHEMA)), contract, writers)
    bad = parsed.where("_reason IS NOT NULL").select("_partition", "_offset", "_reason").collect()
    if bad:
        named = "; ".join(f"{row['_partition']}:{row['_offset']} {row['_reason']}" for row in bad[:_NAMED])
        raise RedriveRefused(
            f"{len(bad):,} of {len(records):,} rows would go to quarantine again ({named}): correct them with --set or --value, "
            "or correct the contract first. Nothing was sent."
        )


def _send(producer: Producer, contract: "Contract", values: Mapping[Row, bytes | None]) -> None:
    try:
        producer.begin_transaction()
        for row, value in values.items():
            kept = [(name, content) for name, content in row.headers if name != HEADER]
            headers: list[tuple[str, str | bytes | None]] = [*kept, (HEADER, origin(contract, row.place))]
            produce(producer, contract.topic, value=value, key=row.key, partition=row.partition, headers=headers)
        producer.commit_transaction(_TIMEOUT_SECONDS)
    except KafkaException as error:
        with suppress(KafkaException):
            producer.abort_transaction(_TIMEOUT_SECONDS)
        raise RedriveFailed(
            f"{contract.topic} did not confirm the rows ({error}). Repeat the command: it sends what is missing, nothing twice."
        ) from error
