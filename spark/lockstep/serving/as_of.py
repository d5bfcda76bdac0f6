"""A table as it was: at a version, at a time, or after certain offsets of the streams that it is made of.

A version, and so a time, needs the files of then: VACUUM keeps those that were replaced for ``retain_hours``. The offsets of
silver and bronze need the rows alone, however old they are.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.control import erased
from lockstep.definition.columns import GENERATION, log_columns
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, contract_of, gold_of
from lockstep.errors import LockstepError
from lockstep.serving.sql import at_version

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings

_OFFSETS = re.compile(r"(?:(?P<stream>\w+):)?(?P<ends>\d+=\d+(?:,\d+=\d+)*)")
# The columns with a record's place, by layer.
_PLACES = {
    "bronze": ("partition", "offset"),
    "silver": ("_partition", "_offset"),
    "quarantine": ("_partition", "_offset"),
}
Offsets = Mapping[int, int]


class AsOfRefused(LockstepError):
    """The table cannot be read as it was then."""


@dataclass(frozen=True)
class Moment:
    """One of these.

    Args:
        version: of the table.
        time: the table as its newest commit until then (UTC) left it.
        offsets: by stream, and partition: what came before these. A partition without one counts as a whole. The stream is empty
            where the table has one only.
    """

    version: int | None = None
    time: datetime | None = None
    offsets: Mapping[str, Offsets] = field(default_factory=dict)


def parse_offsets(given: list[str]) -> dict[str, Offsets]:
    """The offsets, each as ``0=120,1=88``, or ``orders:0=120`` for a table of several streams. Pure.

    Raises:
        AsOfRefused: one does not look like that, or a stream is named twice.
    """
    found: dict[str, Offsets] = {}
    for text in given:
        match = _OFFSETS.fullmatch(text)
        if not match or (match["stream"] or "") in found:
            raise AsOfRefused(
                f"{text!r} names no offsets: write partition=offset, such as 0=120,1=88, or orders:0=120 once for each stream."
            )
        pairs = (pair.split("=") for pair in match["ends"].split(","))
        found[match["stream"] or ""] = {int(partition): int(offset) for partition, offset in pairs}
    return found


def query(settings: "Settings", table: str, moment: Moment) -> str:
    """The query (Spark SQL) of all rows of ``layer.name`` as they were.

    Raises:
        AsOfRefused: there is no such table, or it has no such version, time or offsets.
    """
    if not lake.exists(settings, table):
        raise AsOfRefused(
            f"{table} is no table of the lake. A SQL view has no versions: of `serving.<view>` ask gold.<view> or live.<view>, "
            "and the columns of `silver.<table>_history` say what was valid, and known, when."
        )
    if moment.offsets:
        return _before_offsets(settings, table, moment.offsets)
    version = moment.version if moment.time is None else _version_at(settings, table, moment.time)
    newest = lake.newest_version(settings, table) or 0
    if version is None or not 0 <= version <= newest:
        raise AsOfRefused(f"{table} has no version {version}: it has 0 to {newest}.")
    if version < (first := erased.first_version(settings, table)):
        raise AsOfRefused(
            f"{table} can be read from version {first} on: something in it was erased then, and the versions of before are gone. "
            "Ask for offsets: the rows that were not erased are still there."
        )
    return _all_of(at_version(lake.table_name(settings, table), version))


def _version_at(settings: "Settings", table: str, time: datetime) -> int:
    oldest = None
    for commit in lake.commits(settings, table):
        if commit.timestamp <= time.timestamp() * 1000:
            return commit.version
        oldest = datetime.fromtimestamp(commit.timestamp / 1000, UTC)
    raise AsOfRefused(
        f"{table}: its log begins at {oldest:%FT%TZ}, after {time:%FT%TZ}. Older commits are gone (LOCKSTEP_LOG_HOURS), but rows "
        "are not: ask for offsets, or for the times in silver.<table>_history."
    )


def _before_offsets(settings: "Settings", table: str, offsets: Mapping[str, Offsets]) -> str:
    layer, _, name = table.partition(".")
    if layer == "gold" and name in VIEWS:
        return _all_of(at_version(lake.catalog_name(settings, table), _version_before(settings, name, offsets)))
    contract = contract_of(table)
    if contract is None or layer not in _PLACES:
        raise AsOfRefused(f"{table} has no offsets of its own: bronze, silver, quarantine and gold have.")
    (ends,) = by_stream(offsets, [contract.name], table).values()
    partition, offset = _PLACES[layer]
    before = " AND ".join(f"NOT ({partition} = {p} AND {offset} >= {end})" for p, end in ends.items())
    if table == Tables.of(contract).current:
        return _newest(contract, lake.catalog_name(settings, Tables.of(contract).log), before)
    return f"{_all_of(lake.catalog_name(settings, table))} WHERE {before}"


def _newest(contract: "Contract", log: str, before: str) -> str:
    """The newest change of each row among those before the offsets: what the table of the current rows was then."""
    columns, key = ", ".join(log_columns(contract)), ", ".join(contract.unique_id)
    # Of copies of one change, the first: the current rows keep it when another one comes.
    order = f"{GENERATION} DESC, _commit_lsn DESC, _lsn DESC, _offset"
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS _rank FROM {log} WHERE {before}"  # noqa: S608
    return f"SELECT {columns} FROM ({ranked}) WHERE _rank = 1"  # noqa: S608


def _version_before(settings: "Settings", view: str, offsets: Mapping[str, Offsets]) -> int:
    """The newest version of gold that has taken no record at these offsets or after them."""
    named = by_stream(offsets, VIEWS[view].streams, gold_of(view))
    ends = {CONTRACTS[stream].topic: of_stream for stream, of_stream in named.items()}
    for entry in ledger.entries(settings, gold_of(view)):
        if all(r.end <= ends.get(r.topic, {}).get(r.partition, r.end) for r in entry.ranges):
            return entry.version
    raise AsOfRefused(
        f"{gold_of(view)}: no commit that its log still has comes before these offsets. A replay computes older rows again."
    )


def by_stream(offsets: Mapping[str, Offsets], streams: Sequence[str], table: str) -> dict[str, Offsets]:
    """The offsets by the name of their stream, which may be left out where there is only one. Pure.

    Raises:
        AsOfRefused: they are of another stream, or of none.
    """
    named = {name or (streams[0] if len(streams) == 1 else ""): ends for name, ends in offsets.items()}
    if unknown := named.keys() - {*streams}:
        meant = ", ".join(sorted(unknown)) or "none of them"
        raise AsOfRefused(
            f"{table} is made of {', '.join(streams)}, and the offsets are of {meant}: name the stream, such as "
            f"{streams[0]}:0=120."
        )
    return named


def _all_of(source: str) -> str:
    return f"SELECT * FROM {source}"  # noqa: S608
