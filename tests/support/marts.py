"""What tests of the marts share."""

from typing import Any

from lockstep import lake
from lockstep.settings import Settings


def drop_marts(spark: Any, settings: Settings) -> None:
    """Remove every mart: a build makes all those whose sources are there, and a mart that is there is not built for all days."""
    for table in lake.tables(settings, ("marts",)):
        lake.drop(spark, settings, table)
