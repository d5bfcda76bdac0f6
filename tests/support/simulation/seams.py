"""Where the simulated world is put below the platform's code: tables, leases, the broker, checkpoints, and what Spark computes.

Everything above these seams is the real code.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from typing import Any

import pyarrow as pa
import pytest
from tests.support.simulation import engine, reconciliation, streams
from tests.support.simulation.lake import Rows, appended, merged, replaced, rows_of
from tests.support.simulation.world import World

from lockstep import contracts, lake
from lockstep.batch import going_on, late, rollup
from lockstep.contracts import Contract
from lockstep.control import erased, intervals, records
from lockstep.definition import registry
from lockstep.definition.tables import bronze_of
from lockstep.definition.view import Definition
from lockstep.ingest import bronze
from lockstep.lake import Commit, Txn, small_commits
from lockstep.ledger import ops_table
from lockstep.ledger.entries import Entry
from lockstep.ledger.heads import Head
from lockstep.ledger.ranges import Range, to_where
from lockstep.live import frontier, sink
from lockstep.reconcile import inputs
from lockstep.reconcile import run as reconcile_run
from lockstep.refine import history as silver_history
from lockstep.refine import silver, truncates
from lockstep.replay import checks, promote, shadow, shadow_streams, undo, writer
from lockstep.replay import run as replays

_current: list[World] = []


@contextmanager
def playing(world: World) -> Iterator[None]:
    """The world that the platform's code finds where it gets no settings."""
    _current.append(world)
    try:
        yield
    finally:
        _current.remove(world)


def current() -> World:
    """The world that is played now."""
    return _current[-1]


class Commits:
    """As :class:`lockstep.lake.small_commits.SmallCommits`."""

    def __init__(self, world: World, table: str) -> None:
        self._world, self._name = world, table

    @property
    def schema(self) -> pa.Schema:
        return self._world.lake.tables[self._name].schema

    @property
    def version(self) -> int:
        return len(self._world.lake.tables[self._name].versions) - 1

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """It keeps everything for ever."""

    def append(self, rows: pa.Table, txn: Txn, record: Mapping[str, Any]) -> None:
        append(rows, self._world, self._name, txn, record)

    def merge(self, rows: pa.Table, key: Sequence[str], newer: str | None, txn: Txn, record: Mapping[str, Any]) -> None:
        found = rows_of(rows)
        self._world.write(self._name, txn, record, "MERGE", found, merged(found, key, newer))


class Machines:
    """As :class:`lockstep.batch.saved_machines.SavedMachines`."""

    def __init__(self, world: World, view: str) -> None:
        self._world, self._files = world, world.machine_files.setdefault(view, {})

    def load(self, name: str) -> pa.Table | None:
        return self._files.get(name)

    def save(self, machines: pa.Table) -> str:
        name = str(uuid.UUID(int=self._world.random.getrandbits(128)))
        self._files[name] = machines
        self._world.place("machines saved")
        return name

    def names(self) -> list[str]:
        return [*self._files]

    def remove_all_but(self, names: "Sequence[str | None]") -> None:
        for other in {*self._files} - {*names}:
            del self._files[other]


def append(rows: Any, world: World, table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """As :func:`lockstep.lake.append`."""
    found = rows_of(rows)
    world.write(table, txn, record, "WRITE", found, appended(found))


def append_record(world: World, table: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """As :func:`lockstep.lake.append_record`."""
    append(Rows(), world, table, txn, record)


def replace(rows: Any, world: World, table: str, where: str, txn: Txn, record: Mapping[str, Any]) -> None:
    """As :func:`lockstep.lake.replace`."""
    found = rows_of(rows)
    world.write(table, txn, record, "WRITE", found, replaced(found, where))


def merge(
    rows: Any, world: World, table: str, key: Sequence[str], newer: str, txn: Txn, record: Mapping[str, Any]
) -> None:
    """As :func:`lockstep.lake.merge`."""
    found = rows_of(rows)
    world.write(table, txn, record, "MERGE", found, merged(found, key, newer))


def _create(_spark: Any, world: World, table: str, columns: Mapping[str, str], *_: Any, **__: Any) -> None:
    world.lake.create(table, columns)


def _commits(world: World, table: str) -> Iterator[Commit]:
    return world.lake.commits(table)


def _read(_spark: Any, world: World, table: str, version: int | None = None) -> Rows:
    return world.lake.read(table, version)


def _collect(world: World, table: str, where: str, columns: Sequence[str], version: int | None = None) -> pa.Table:
    return engine.arrow(world.lake.read(table, version).where(where), columns)


def _read_small(world: World, ranges: Sequence[Range]) -> Rows:
    found = (record for r in ranges for record in world.kafka.read((r.topic, r.partition), r.start, r.end))
    return Rows(map(engine.bronze_row, found))


def _read_range(_spark: Any, world: World, ranges: Sequence[Range]) -> Rows:
    return _read_small(world, ranges)


def _advance(
    world: World,
    table: str,
    version: int,
    seq: int,
    ranges: Sequence[Range],
    epochs: Mapping[int, int] | None = None,
) -> None:
    if table not in world.heads or world.heads[table].seq <= seq:
        known = epochs or {}
        of = {r.partition: known[r.partition] for r in ranges if r.partition in known}
        world.heads[table] = Head(version, seq, {r.partition: r.end for r in ranges}, of)


def _lease(world: World, tables: str | Sequence[str], _holder: str) -> Any:
    return world.lease(tables)


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _never(*_: Any) -> None:
    raise AssertionError("no table is truncated")


def _kept_in_spark(rows: Rows, _are_changes: bool) -> Any:
    return nullcontext(engine.FoundRows(rows))


def _parsed(_spark: Any, world: World, contract: Contract, ranges: list[Range], *_: Any) -> Rows:
    return _read(_spark, world, bronze_of(contract)).where(to_where(ranges))


def _small_slice(world: World, contract: Contract, previous: Entry | None, parsed: Rows) -> engine.FoundRows:
    rows = engine.silver_rows(parsed, contract, previous.newest if previous else {})
    if contract.kind == "changes":
        rows = engine.with_ended(engine.with_order(rows, previous.commits if previous else {}), None)
    return engine.FoundRows(engine.classify(rows, world.rows(previous.table) if previous else None, contract))


def _definition(_view: Any) -> str:
    return "definition"


def _failpoint(name: str) -> None:
    current().place(name)


@contextmanager
def _control(world: World) -> Iterator[World]:
    yield world


def _drop(_spark: Any, world: World, table: str) -> None:
    world.lake.tables.pop(table, None)


def _tables(world: World, layers: Sequence[str]) -> list[str]:
    return sorted(name for name in world.lake.tables if name.partition(".")[0] in layers)


class _Functions:
    """As :mod:`pyspark.sql.functions`, where a function is called on rows of the simulation."""

    @staticmethod
    def lit(value: Any) -> Any:
        return value


class _Settings:
    """As the module :mod:`lockstep.settings`."""

    load = staticmethod(current)


class _Published:
    """As the modules of :mod:`lockstep.serving`: readers are not simulated."""

    hold = publish = follow = staticmethod(_nothing)


class _Lease:
    """As the module :mod:`lockstep.live.lease`."""

    acquire = staticmethod(_nothing)


class _InAnyOrder:
    """As ``ThreadPoolExecutor``: what is submitted runs in the order that the seed says, so that a kill may leave any of it."""

    def __init__(self, _at_once: int) -> None:
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def __enter__(self) -> "_InAnyOrder":
        return self

    def __exit__(self, *_: object) -> None:
        current().random.shuffle(self._waiting)
        for future, function, arguments in self._waiting:
            future.set_result(function(*arguments))

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        self._waiting.append((Future(), function, arguments))
        return self._waiting[-1][0]


def _checkpoint(location: str) -> Any:
    return current().jobs[location].checkpoint


def _location(world: World, view: Definition) -> str:
    return next(name for name, job in world.jobs.items() if view in job.views)


@contextmanager
def installed() -> Iterator[pytest.MonkeyPatch]:
    """Put the simulated world in place; afterwards all is as it was."""
    with pytest.MonkeyPatch.context() as patch:

        def put(module: Any, **seams: Any) -> None:
            for name, seam in seams.items():
                patch.setattr(module, name, seam)

        patch.setattr(contracts.CONTRACTS, "_loaded", streams.CONTRACTS)
        patch.setattr(registry.VIEWS, "_loaded", streams.VIEWS)
        put(lake, commits=_commits, read=_read, create=_create, append=append, replace=replace, merge=merge)
        put(lake, append_record=append_record, exists=lambda world, table: table in world.lake.tables)
        put(lake, checkpoint=lambda _world, name, _number: name)
        put(lake, is_small=lambda rows: rows <= current().small_rows, read_as_now=_read)
        put(small_commits, SmallCommits=Commits, collect=_collect)
        put(bronze, lease=_lease, failpoint=_failpoint, record_digest=_nothing)
        put(bronze, read_small=_read_small, read_range=_read_range)
        put(bronze, head=lambda world, table: world.heads.get(table), advance=_advance)
        put(bronze, topic_offsets=lambda world, topic, epochs: world.kafka.offsets(topic, epochs))
        put(silver, lease=_lease, failpoint=_failpoint, record_digest=_nothing)
        put(silver, silver_rows=engine.silver_rows, classify=engine.classify)
        put(silver, remembered=engine.remembered, oldest_of=engine.oldest_of)
        put(silver, with_order=engine.with_order, check_order=engine.check_order)
        put(silver, with_ended=engine.with_ended, newest_truncate=_never)
        put(truncates, write_deletes=_never)
        put(silver_history, define=_nothing)
        put(silver, kept_in_spark=_kept_in_spark, parsed=_parsed, small_slice=_small_slice)
        put(rollup, lease=_lease, ensure=_nothing, definition_version=_definition)
        put(rollup, summary=engine.summary, result=engine.result, new_events=engine.new_events)
        put(late, define=_nothing)
        put(going_on, from_history=engine.from_history, machines_from_history=engine.machines_from_history)
        put(going_on, SavedMachines=Machines)
        put(going_on, definition_version=_definition, failpoint=_failpoint)
        put(sink, settings=_Settings, lease=_Lease, Checkpoint=_checkpoint, SmallCommits=Commits)
        put(sink, definition_version=_definition, newest=engine.newest_of_each, ThreadPoolExecutor=_InAnyOrder)
        put(lake, drop=_drop, tables=_tables, schema=lambda world, table: Commits(world, table).schema)
        put(lake, last_transaction=lambda world, table, app: world.lake.tables[table].transactions.get(app, 0))
        put(records, put=World.put, of_each_key=World.records_of)
        put(records, newest=lambda world, table: next(iter(world.records_of(table)[::-1]), None))
        put(records, of_key=lambda world, table, key: world.records.get(table, {}).get(key))
        put(intervals, claim=World.claim, release=World.release)
        put(ops_table, lease=_lease)
        put(replays, lease=_lease, failpoint=_failpoint, diff=engine.diff)
        put(checks, failed_suites=lambda *_: {})
        put(erased, first_version=lambda *_: 0)
        put(shadow, result=engine.result, _extent=engine.extent)
        put(shadow_streams, _classified=engine.classified_again, counted=engine.counted_by_outcome, F=_Functions)
        put(promote, result=engine.result, summary=engine.summary, failpoint=_failpoint)
        put(undo, _windows_of=engine.windows_of)
        put(writer, lease=_lease, control=_control, advance=_advance, summary=engine.summary, newest=engine.newest)
        put(writer, manifest=_Published, merged=_Published)
        put(frontier, Checkpoint=_checkpoint, checkpoint_location=_location)
        put(inputs, checkpoint_location=_location)
        put(reconcile_run, lease=_lease, notify=reconciliation.Notify, collect=lambda rows: rows)
        put(reconcile_run, by_window=reconciliation.by_window, _attributed=reconciliation.attributed)
        put(reconcile_run, compare_few=lambda *_: None)
        yield patch
