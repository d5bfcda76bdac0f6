"""What a run of refine does for all its streams at once: their small slices are parsed together.

Nothing is locked here. Refine uses what was prepared only if it is still what it takes.
"""

import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.ledger.ranges import size
from lockstep.refine.silver import next_ranges
from lockstep.refine.small_slice import Parsed, parse_together
from lockstep.schema_registry import RegistryDown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.ledger.ranges import Range
    from lockstep.settings import Settings

log = logging.getLogger(__name__)


def prepare(
    settings: "Settings",
    contracts: "Iterable[Contract]",
    connect: "Callable[[], AbstractContextManager[SparkSession]]",
) -> dict[str, Parsed]:
    """Parse the small slices of several streams, by stream. What is large, or cannot be prepared, is left out.

    Args:
        connect: opens a session, if there is something to parse together.
    """
    slices = _fitting(settings, contracts)
    if len(slices) < 2:  # one is parsed by its own run
        return {}
    with connect() as spark:
        try:
            parsed = parse_together(spark, settings, slices)
        except (PySparkException, DeltaError, RegistryDown) as error:
            # For this, one stream's contract or table is enough. Each stream parses its own slice then, and reports it.
            log.warning("%s were not parsed together: %s", ", ".join(contract.name for contract, _ in slices), error)
            return {}
    return {contract.name: one for (contract, _), one in zip(slices, parsed, strict=True)}


def _fitting(settings: "Settings", contracts: "Iterable[Contract]") -> "list[tuple[Contract, list[Range]]]":
    """The smallest slices, as many as are small together."""
    found = []
    for contract in contracts:
        try:
            found.append((contract, next_ranges(settings, contract)))
        except LockstepError as error:
            log.info("%s is not prepared: %s", contract.name, error)
    slices, total = list[tuple["Contract", list["Range"]]](), 0
    for contract, ranges in sorted(found, key=lambda one: size(one[1])):
        total += size(ranges)
        if size(ranges) and lake.is_small(total):
            slices.append((contract, ranges))
    return slices
