"""The sample of an environment: production's events from a time on, and its tables as a whole.

A table's row may be of any age, and an event is joined to it all the same. So changes are taken from their first offset.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.control import records
from lockstep.control.records import Record
from lockstep.definition.tables import bronze_of
from lockstep.definition.view import BEGINNING
from lockstep.errors import LockstepError
from lockstep.ingest import bronze
from lockstep.ingest.offsets import offsets_at, topic_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings

EARLIEST = "earliest"
# Long enough for views over a few hours, and short enough to be computed in a minute or two.
DEFAULT = "24h"
_SINCE = "since"
_AGO = re.compile(r"([0-9]{1,4})([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


class SampleRefused(LockstepError):
    """A sample cannot begin there."""


def parse_since(text: str, now: datetime) -> datetime:
    """The instant (UTC) at which a sample begins.

    Args:
        text: ``earliest``, a time in ISO 8601 with its zone, or how long ago: ``90m``, ``2h``, ``7d``.

    Raises:
        SampleRefused: it is none of these, or not in the past.
    """
    if text == EARLIEST:
        return BEGINNING
    if ago := _AGO.fullmatch(text):
        return max(now - int(ago[1]) * _UNITS[ago[2]], BEGINNING)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or at > now:
        raise SampleRefused(
            f"{text!r} is not where a sample can begin: use {EARLIEST}, a time in the past with its zone such as "
            "2026-11-20T10:00:00Z, or how long ago: 90m, 2h, 7d."
        )
    return max(at.astimezone(UTC), BEGINNING)


def noted(settings: "Settings", name: str) -> str | None:
    """What the environment has noted under a name in its control database; None: nothing."""
    found = records.newest(settings, f"environment/{name}")
    return str(found.fields["value"]) if found else None


def note(settings: "Settings", name: str, value: str) -> None:
    """Note a value under a name, in the place of the one before."""
    table = f"environment/{name}"
    before = records.newest(settings, table)
    records.put(settings, table, [Record("", (before.seq if before else 0) + 1, {"value": value}, datetime.now(UTC))])


def since(settings: "Settings") -> datetime | None:
    """The instant (UTC) at which the environment's sample begins; None: it has none yet."""
    at = noted(settings, _SINCE)
    return datetime.fromisoformat(at) if at else None


def settle(settings: "Settings", asked: str | None) -> datetime:
    """The instant (UTC) at which the sample begins. It is fixed with the first call.

    Args:
        asked: as in :func:`parse_since`; None: :data:`DEFAULT`, or what is fixed.

    Raises:
        SampleRefused: the sample begins elsewhere already.
    """
    now = datetime.now(UTC)
    if fixed := since(settings):
        if asked:
            raise SampleRefused(
                f"The sample of {settings.env} begins at {fixed:%F %T} UTC already. Leave --since out; or remove the environment "
                f"with `lockstep --env {settings.env} remove`, and apply it again."
            )
        return fixed
    at = parse_since(asked or DEFAULT, now)
    note(settings, _SINCE, at.isoformat())
    return at


def begin(spark: "SparkSession", settings: "Settings", contract: "Contract", at: datetime, run_id: str) -> None:
    """Begin bronze's ledger of a stream where the sample begins. If it has begun, nothing changes."""
    if contract.kind == "changes" or ledger.latest(settings, bronze_of(contract)):
        return
    # Before the times are looked up: a record that comes in between is after these ends.
    partitions = topic_offsets(settings, contract.topic).partitions
    found = offsets_at(settings, ((contract.topic, p) for p in partitions), at)
    starts = {p: found.get((contract.topic, p), end) for p, (_, end) in partitions.items()}
    bronze.begin_at(spark, settings, contract, starts, run_id)


def is_complete(settings: "Settings", contracts: "Iterable[Contract]") -> bool:
    """Whether the sample has all records that these topics ever had."""
    origins = (ledger.origin(settings, bronze_of(contract)) for contract in contracts)
    return not any(start for origin in origins for start in origin.values())
