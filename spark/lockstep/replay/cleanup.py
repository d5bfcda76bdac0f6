"""Free what a replay holds: its intervals, and the space of its shadows."""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.control import intervals
from lockstep.replay import record
from lockstep.replay.tables import shadows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


def release(spark: "SparkSession", settings: "Settings", replay: str) -> None:
    """Free the intervals of a replay that has ended, and remove its shadows."""
    intervals.release(settings, replay)
    for table in shadows_of(lake.tables(settings, ["shadow"]), replay):
        lake.drop(spark, settings, table)


def remove_orphan_shadows(spark: "SparkSession", settings: "Settings") -> list[str]:
    """Remove the shadows of replays that ended, but whose task died before it removed them; their names are returned."""
    shadows = lake.tables(settings, ["shadow"])
    in_use = {t for replay in record.replays(settings) if replay.is_open for t in shadows_of(shadows, replay.id)}
    orphans = [table for table in shadows if table not in in_use]
    for table in orphans:
        lake.drop(spark, settings, table)
    return orphans
