"""Make an environment, or bring it up to the project's files and to production's records: ingest, refine and roll-up, here.

It may run again: it goes on where it was. What a changed contract or view decides is removed, and computed again from the sample.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.batch import rollup
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.control import environments
from lockstep.control.leases import lease
from lockstep.definition.registry import broken, chosen
from lockstep.definition.tables import Tables, bronze_of, gold_of
from lockstep.definition.version import contract_version, definition_version
from lockstep.definition.view import BEGINNING
from lockstep.environments import position, sample
from lockstep.errors import LockstepError
from lockstep.for_each import for_each
from lockstep.ingest import bronze
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.refine import silver
from lockstep.serving import merged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.definition import View
    from lockstep.ledger import Entry
    from lockstep.settings import Settings

Say = Callable[[str], None]
# By stream and partition, the offset at which a run stops.
Ends = Mapping[str, Mapping[int, int]]
RUN_ID = "environment"
# Who applies or removes an environment holds this lease.
LEASE = "environment"
# A person waits, and is told who holds it.
_WAIT_SECONDS = 5


class FilesRefused(LockstepError):
    """A contract or a view of the project cannot run."""


def apply(settings: "Settings", asked: str | None, say: Say) -> None:
    """Make the environment as the project's files and production's records say.

    Args:
        settings: those of the environment, which ``LOCKSTEP_ENV`` names too.
        asked: where the sample begins (:func:`~lockstep.environments.sample.parse_since`); None: the default, or where it began.

    Raises:
        FilesRefused, SampleRefused: nothing was computed.
        SomeFailed: some streams or views failed at a step. The others are done, and the next step was not begun.
    """
    if refused := broken():
        lines = "\n".join(f"  {place}: {reason}" for place, reason in refused.items())
        raise FilesRefused(f"Nothing was changed: correct what is refused first.\n{lines}")
    environments.create(settings)
    with lease(settings, LEASE, "apply", _WAIT_SECONDS):
        at = sample.settle(settings, asked)
        views = _with_topics(settings, chosen(settings.views), say)
        contracts = [CONTRACTS[name] for name in dict.fromkeys(stream for view in views for stream in view.streams)]
        say(
            f"sample: events {f'since {at:%F %T} UTC' if at > BEGINNING else 'from the first on'}, and tables as a whole"
        )
        for_each("ingest", partial(_ingest, at, _ends(settings, contracts, views)), contracts, RUN_ID)
        for contract in contracts:
            say(f"{bronze_of(contract)}: {_total(settings, bronze_of(contract)):,} records")
        for_each("refine", partial(_refine, say), contracts, RUN_ID)
        for_each("roll_up", partial(_roll_up, say), views, RUN_ID)
        for view in views:
            say(_result(settings, view))
        with connect(settings, "apply") as spark:
            merged.publish(spark, settings, views)


def _with_topics(settings: "Settings", views: "list[View]", say: Say) -> "list[View]":
    """The views whose topics exist."""
    topics = {view.name: [CONTRACTS[stream].topic for stream in view.streams] for view in views}
    there = offsets_of_existing_topics(settings, sorted({topic for of_view in topics.values() for topic in of_view}))
    missing = {name: topic for name, of_view in topics.items() for topic in of_view if topic not in there}
    for name, topic in missing.items():
        say(f"view {name}: left out, because there is no topic {topic}, and an environment makes none")
    return [view for view in views if view.name not in missing]


def _ends(settings: "Settings", contracts: "list[Contract]", views: "list[View]") -> Ends:
    """Where this run stops: where production's gold is, or where the topic ends now."""
    topics = offsets_of_existing_topics(settings, [contract.topic for contract in contracts])
    now = {c.name: topics[c.topic].stable_ends for c in contracts}
    return {c.name: now[c.name] | position.ends(settings, c, views) for c in contracts}


def _ingest(
    at: datetime, ends: Ends, spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str
) -> "Entry | None":
    sample.begin(spark, settings, contract, at, run_id)
    last = None
    while entry := bronze.ingest(spark, settings, contract, run_id, ends[contract.name]):
        last = entry
    return last


def _refine(say: Say, spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str) -> "Entry | None":
    version, name = contract_version(contract), f"contract/{contract.name}"
    known = sample.noted(settings, name)
    if known and known != version:
        _remove_silver(spark, settings, contract, run_id, say)
    if known != version:
        sample.note(settings, name, version)
    last = None
    while entry := silver.refine(spark, settings, contract, run_id):
        last = entry
    return last


def _remove_silver(spark: "SparkSession", settings: "Settings", contract: "Contract", run_id: str, say: Say) -> None:
    tables = Tables.of(contract)
    say(f"{tables.log}: is computed again, because its contract has changed")
    with lease(settings, tables.log, run_id):
        for table in filter(None, (tables.log, tables.current, tables.quarantine)):
            lake.drop(spark, settings, table)


def _roll_up(say: Say, spark: "SparkSession", settings: "Settings", view: "View", run_id: str) -> "Entry | None":
    table, newest = gold_of(view), ledger.latest(settings, gold_of(view))
    if newest and newest.definition != definition_version(view):
        say(f"{table}: is computed again, because its definition has changed")
        with lease(settings, table, run_id):
            lake.drop(spark, settings, table)
    return rollup.roll_up(spark, settings, view, run_id)


def _total(settings: "Settings", table: str) -> int:
    newest = ledger.latest(settings, table)
    return sum(newest.totals.values()) if newest else 0


def _result(settings: "Settings", view: "View") -> str:
    newest = ledger.latest(settings, gold_of(view))
    if newest is None:
        return f"{gold_of(view)}: no rows, because the sample has none of {', '.join(view.streams)}"
    until = f", final until {newest.until:%F %T} UTC" if newest.until and newest.until > BEGINNING else ""
    return f"{gold_of(view)}: is up to date{until}"
