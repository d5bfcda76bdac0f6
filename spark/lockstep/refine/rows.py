"""Bronze's rows with all columns that silver's log has. Pure; live needs only those of :func:`lockstep.refine.parse.parse`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lockstep.refine.parse import parse
from lockstep.refine.unknown import with_unknown
from lockstep.refine.watermarks import with_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.contracts import Contract
    from lockstep.formats.confluent import Writers


def silver_rows(raw: "DataFrame", contract: "Contract", before: Mapping[int, int], writers: "Writers") -> "DataFrame":
    """Parse bronze's rows, and add ``_unknown``, and for events ``_watermark``. No row is dropped.

    Args:
        raw: all records of some ranges, one for each partition.
        before: per partition, the newest Kafka timestamp before its range (milliseconds, UTC).
        writers: the schemas of records in Confluent's wire format.
    """
    return with_watermark(with_unknown(parse(raw, contract, writers), contract), contract, before)
