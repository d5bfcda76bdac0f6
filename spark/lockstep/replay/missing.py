"""Rows of a replay's interval that Kafka has and bronze lacks. They are ingested first, through the normal pipeline."""

import logging
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

from kafka import TopicPartition

from lockstep import ledger
from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.registry import chosen
from lockstep.definition.tables import Tables, silver_of
from lockstep.ingest.bronze import ingest
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.kafka_clients import consumer
from lockstep.ledger.ranges import Range, ends
from lockstep.quality.gate import GateFailed, run_gates
from lockstep.quality.readiness import unchecked
from lockstep.quality.suites import gated
from lockstep.refine.silver import refine
from lockstep.replay.parse import readers
from lockstep.replay.plan import Part, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

log = logging.getLogger(__name__)


def ranges_missing(settings: "Settings", contract: Contract, start: datetime, end: datetime) -> tuple[Range, ...]:
    """The offsets of the topic between two timestamps (UTC) that are beyond bronze's position."""
    newest = ledger.latest(settings, Tables.of(contract).bronze)
    position = ends(newest.ranges) if newest else {}
    beyond = (
        Range(r.topic, r.topic_id, r.partition, max(r.start, position.get(r.partition, 0)), r.end)
        for r in _between(settings, contract.topic, start, end)
        if r.end > position.get(r.partition, 0)
    )
    return tuple(r for r in beyond if r.size)


def _between(settings: "Settings", topic: str, start: datetime, end: datetime) -> list[Range]:
    """Per partition, from the first offset with a timestamp of at least ``start`` to the first with at least ``end``.

    With ``CreateTime`` offsets are not ordered by time: some rows before the first may be younger than ``start``, and some after
    the last older than ``end``. A topic that does not exist has no ranges.
    """
    offsets = offsets_of_existing_topics(settings, [topic]).get(topic)
    if offsets is None:
        return []
    partitions = {p: TopicPartition(topic, p) for p in offsets.partitions}
    with closing(consumer(settings)) as reader:
        at_start, at_end = (
            reader.offsets_for_times({tp: int(moment.timestamp() * 1000) for tp in partitions.values()})
            for moment in (start, end)
        )
    ranges = []
    for p, tp in sorted(partitions.items()):
        # No offset is that late: the partition ends before.
        first, last = (at[tp].offset if at.get(tp) else offsets.partitions[p][1] for at in (at_start, at_end))
        ranges.append(Range(topic, offsets.topic_id, p, first, max(first, last)))
    return ranges


def ingest_missing(spark: "SparkSession", settings: "Settings", plan: Plan, run_id: str) -> None:
    """Ingest, refine and roll up what the plan found in Kafka but not in bronze, as the DAGs would.

    A view that is not chosen, or reads rows that do not pass their gate, is not rolled up.
    """
    streams = [part.stream for part in plan.parts if part.missing]
    for part in plan.parts:
        while part.missing and not _is_ingested(settings, part):
            if not ingest(spark, settings, CONTRACTS[part.stream], run_id):
                break
    for stream in streams:
        while refine(spark, settings, CONTRACTS[stream], run_id):
            pass
    tables = {silver_of(CONTRACTS[stream]) for stream in streams} & {*gated(settings)}
    try:
        run_gates(spark, settings, unchecked(settings, sorted(tables)), run_id)
    except GateFailed as shut:
        log.warning("%s", shut)
    shut_tables = {*unchecked(settings, sorted(tables))}
    for view in readers(streams):
        if view in chosen(settings.views) and shut_tables.isdisjoint(silver_of(CONTRACTS[s]) for s in view.streams):
            roll_up(spark, settings, view, run_id)


def _is_ingested(settings: "Settings", part: Part) -> bool:
    newest = ledger.latest(settings, Tables.of(CONTRACTS[part.stream]).bronze)
    position = ends(newest.ranges) if newest else {}
    return all(position.get(r.partition, 0) >= r.end for r in part.missing)
