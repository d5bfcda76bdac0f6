"""Build the days of the marts again to which erased rows belonged, and remove what the tables were before."""

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, silver_of
from lockstep.erase.purge import purge
from lockstep.ledger.ranges import where_offsets
from lockstep.marts import published, record
from lockstep.marts.run import build_days
from lockstep.marts.touched import spans, touched
from lockstep.quality.slices import Slice
from lockstep.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.erase.find import Found
    from lockstep.settings import Settings


def days_of(spark: "SparkSession", settings: "Settings", found: "Mapping[str, Found]") -> set[date]:
    """The days of the rows that silver has of these records, by stream. None of streams that no mart has read."""
    read = record.TABLE.newest(settings).get("positions", {}).keys()
    days: set[date] = set()
    for name, of in found.items():
        contract = CONTRACTS[name]
        tables = {
            silver_of(contract),
            Tables.of(contract).log,
            *(gold_of(v) for v in VIEWS.values() if name in v.streams),
        }
        if contract.event_time and of.counts.get("silver") and tables & read:
            where = where_offsets(of.offsets, "_partition", "_offset")
            days |= touched(spark, settings, Slice(silver_of(contract), 0, where, of.records))
    return days


def build_again(spark: "SparkSession", settings: "Settings", days: "Iterable[date]", run_id: str) -> dict[str, int]:
    """Build the days, and let readers see them; by table, the first version that is left.

    Raises:
        MartsFailed: a model or a test failed. Readers see the marts as they were, until the erasure is asked for again.
    """
    of = spans(days)
    for span in of:
        build_days(spark, settings, span, run_id, Results())
    if not of:
        return {}
    with lease(settings, "marts", run_id):
        versions = {table: purge(settings, table) for table in lake.tables(settings, [lake.MARTS])}
        published.show(spark, settings)
        return versions
