"""What views and streams have left behind that the project's files do not have any more."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.batch import saved_machines
from lockstep.checkpoints.savepoints import savepoint_location
from lockstep.contracts import CONTRACTS
from lockstep.control import traces
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.deploy.sizes import readable
from lockstep.errors import LedgerBroken
from lockstep.ledger import archive
from lockstep.live import generations
from lockstep.live.generation import Job

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The layers of streams, in the order in which their tables are removed: bronze, from which all others came, is the last.
_LAYERS = ("quarantine", "silver", "bronze")
_CHANGES = "_changes"


class Kind(StrEnum):
    """What it was."""

    VIEW = "view"
    STREAM = "stream"


@dataclass(frozen=True)
class Remains:
    """What one view or stream has left behind. Sizes are in bytes.

    Args:
        tables: sizes by table, in the order in which they are removed.
        checkpoints: sizes by job, of the jobs that have run no other view.
        savepoints: sizes by name.
        machines: the size of what its last roll-ups have saved.
        records: the rows of the control database.
        archived: the entries in ``ops.ledger``.
        topic: what a stream was read from, if its ledger still says so. It stays.
    """

    kind: Kind
    name: str
    tables: Mapping[str, int] = field(default_factory=dict)
    checkpoints: Mapping[Job, int] = field(default_factory=dict)
    savepoints: Mapping[str, int] = field(default_factory=dict)
    machines: int = 0
    records: int = 0
    archived: int = 0
    topic: str | None = None

    def __str__(self) -> str:
        """``view a``."""
        return f"{self.kind} {self.name}"

    def describe(self) -> str:
        """All of it in one line, with sizes."""
        parts = [f"{table} ({readable(size)})" for table, size in self.tables.items()]
        parts += [f"checkpoint {job} ({readable(size)})" for job, size in self.checkpoints.items()]
        parts += [f"savepoint {name} ({readable(size)})" for name, size in self.savepoints.items()]
        parts += [f"saved machines ({readable(self.machines)})"] if self.machines else []
        parts += [f"{self.archived:,} rows of {archive.TABLE.name}"] if self.archived else []
        parts += [f"{self.records:,} rows of the control database"] if self.records else []
        return ", ".join(parts) or "empty directories"


def find(settings: "Settings") -> list[Remains]:
    """Everything that is left of views and streams that the project's files do not have. Reads only, and needs no Spark.

    The caller sees to it that no file is broken: nobody knows which view or stream such a file has.

    Raises:
        ControlUnavailable: the control database does not answer.
    """
    views = [_of_view(settings, name) for name in sorted(_names_of_views(settings) - VIEWS.keys())]
    streams = [_of_stream(settings, name, tables) for name, tables in sorted(_removed_streams(settings).items())]
    return [*views, *streams]


def _names_of_views(settings: "Settings") -> set[str]:
    lake_of = settings.lake.rstrip("/")
    places = ["gold", "live", "_machines", "_checkpoints", "_savepoints"]
    names = {name for place in places for name in lake.directories(f"{lake_of}/{place}")} | generations.names(settings)
    # The platform's own, such as the checkpoints of shared jobs. No view has such a name.
    return {name for name in names if not name.startswith("_")}


def _of_view(settings: "Settings", name: str) -> Remains:
    tables = {
        table: size for table in (live_of(name), gold_of(name)) if (size := lake.size(lake.path(settings, table)))
    }
    numbers = lake.directories(lake.checkpoint(settings, name, 0).rpartition("/")[0])
    jobs = {Job(name, int(number)) for number in numbers if number.isdigit()}
    jobs |= generations.own_shared_jobs(settings, name)
    return Remains(
        Kind.VIEW,
        name,
        tables=tables,
        checkpoints={job: size for job in sorted(jobs) if (size := lake.size(job.location(settings)))},
        savepoints={
            savepoint: lake.size(savepoint_location(settings, f"{name}/{savepoint}"))
            for savepoint in lake.directories(savepoint_location(settings, name))
        },
        machines=lake.size(saved_machines.location(settings, name)),
        records=traces.rows_of_view(settings, name) + traces.rows_of_tables(settings, [live_of(name), gold_of(name)]),
        archived=archive.count(settings, [gold_of(name)]),
    )


def _removed_streams(settings: "Settings") -> dict[str, list[str]]:
    """By name of a stream without a contract, its tables in the order in which they are removed."""
    there = [
        f"{layer}.{name}" for layer in _LAYERS for name in lake.directories(f"{settings.lake.rstrip('/')}/{layer}")
    ]
    return without_owner(there, {table for contract in CONTRACTS.values() for table in _tables(Tables.of(contract))})


def without_owner(there: Collection[str], owned: Collection[str]) -> dict[str, list[str]]:
    """By name of a stream, those of the tables that no contract owns, in their order. Pure."""
    streams: dict[str, list[str]] = {}
    for table in there:
        layer, _, name = table.partition(".")
        if table in owned:
            continue
        # A stream of changes has two tables of silver. That of its changes may also be the only one of a stream of this name.
        if layer == "silver" and name.endswith(_CHANGES) and f"bronze.{name}" not in there:
            name = name.removesuffix(_CHANGES)
        streams.setdefault(name, []).append(table)
    return streams


def _of_stream(settings: "Settings", name: str, tables: list[str]) -> Remains:
    return Remains(
        Kind.STREAM,
        name,
        tables={table: lake.size(lake.path(settings, table)) for table in tables},
        records=traces.rows_of_tables(settings, tables),
        archived=archive.count(settings, tables),
        topic=_topic(settings, f"bronze.{name}"),
    )


def _topic(settings: "Settings", bronze: str) -> str | None:
    topics: set[str] = set()
    # A broken ledger is no reason to keep it.
    with suppress(LedgerBroken):
        newest = ledger.latest(settings, bronze)
        topics = {r.topic for r in newest.ranges} if newest else set()
    return next(iter(topics - {contract.topic for contract in CONTRACTS.values()}), None)


def _tables(tables: Tables) -> Iterator[str]:
    yield from filter(None, (tables.quarantine, tables.current, tables.log, tables.bronze))
