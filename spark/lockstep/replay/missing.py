"""What of a replay's interval Kafka has and bronze does not: it comes in by the way that all rows come in."""

from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.ingest.bronze import ingest
from lockstep.ledger.ranges import ends
from lockstep.refine.silver import refine
from lockstep.replay.plan import Part, Plan
from lockstep.replay.request import readers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


def bring_in(spark: "SparkSession", settings: "Settings", plan: Plan, run_id: str) -> None:
    """Take what the plan found in Kafka alone, through every layer."""
    streams = [part.stream for part in plan.parts if part.missing]
    for part in plan.parts:
        while part.missing and not _has(settings, part) and ingest(spark, settings, CONTRACTS[part.stream], run_id):
            pass
    for stream in streams:
        while refine(spark, settings, CONTRACTS[stream], run_id):
            pass
    for view in readers(streams):
        roll_up(spark, settings, view, run_id)


def _has(settings: "Settings", part: Part) -> bool:
    done = ledger.latest(settings, Tables.of(CONTRACTS[part.stream]).bronze)
    held = ends(done.ranges) if done else {}
    return all(held.get(r.partition, 0) >= r.end for r in part.missing)
