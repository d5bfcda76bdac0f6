"""The watermark of each record's partition when the record came, by the log alone. Pure.

A record may come long after younger ones of its partition: its producer's clock is behind, or it waited before it could send.
Views that process events in their order cannot take it at the time of its stamp any more, so it is as late as the newest record
before it says. The live layer follows the same rule (:mod:`lockstep.live.watermarks`).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lockstep.contracts import Contract


def with_watermark(parsed: "DataFrame", contract: "Contract", before: Mapping[int, int]) -> "DataFrame":
    """Add ``_watermark``: the newest Kafka timestamp of the partition up to the record, less ``max_out_of_orderness``.

    Changes of a table are never late, and have none.

    Args:
        parsed: all records of some ranges, one for each partition.
        before: per partition, the newest timestamp before its range (milliseconds, UTC).
    """
    if contract.kind == "changes":
        return parsed
    so_far = Window.partitionBy("_partition").orderBy("_offset").rowsBetween(Window.unboundedPreceding, 0)
    newest = F.greatest(F.max("_arrival").over(so_far), _timestamp(before))
    bound = F.make_dt_interval(secs=F.lit(contract.max_out_of_orderness.total_seconds()))
    return parsed.withColumn("_watermark", newest - bound)


def _timestamp(newest: Mapping[int, int]) -> "Column":
    """The timestamp of the row's partition; null where there is none."""
    partition = F.col("_partition")
    cases = (F.when(partition == p, F.timestamp_millis(F.lit(at))) for p, at in newest.items())
    return F.coalesce(*cases, F.lit(None).cast("timestamp"))
