"""A fingerprint of rows that does not depend on their order, their files, or the order of their columns. Pure."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def digest(rows: "DataFrame") -> str:
    """``<rows>:<sum of the rows' hashes>``: equal for equal contents, repeated rows counted.

    A row is hashed (xxhash64, twice) as JSON with its columns sorted by name, so that null, empty and missing differ.
    """
    text = F.to_json(F.struct(*sorted(rows.columns)), {"ignoreNullFields": "false"})
    total = F.sum(F.xxhash64(text).cast("decimal(38,0)"))
    salted = F.sum(F.xxhash64(F.concat(F.lit("lockstep"), text)).cast("decimal(38,0)"))
    found = rows.agg(F.count("*").alias("rows"), total.alias("total"), salted.alias("salted")).collect()[0]
    return f"{found['rows']}:{found['total'] or 0}:{found['salted'] or 0}"
