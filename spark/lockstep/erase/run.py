"""Erase a person, or single records, in all layers. An erasure that was killed goes on when it is asked for again.

First all that is to be done is found and recorded, then the layers forget it in the order in which data flows, and last the old
versions are removed. While it runs, nobody else writes the tables.
"""

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.contracts import CONTRACTS, Contract, captured_tables
from lockstep.control import erased, intervals, leases, subject_keys
from lockstep.control.leases import lease
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.erase import live, marts, purge, receipt, restored, scrub, streams, views
from lockstep.erase.find import Found
from lockstep.erase.needles import Needles
from lockstep.erase.request import check_environments
from lockstep.erase.scan import scan, settled
from lockstep.erase.scope import Asked, Scope, remove_what_is_shuffled, scope_of
from lockstep.erase.views import Touched
from lockstep.failpoints import failpoint
from lockstep.ingest.bronze import behind, ingest
from lockstep.ingest.offsets import topic_offsets
from lockstep.ledger import archive
from lockstep.refine.tokens import token
from lockstep.serving.publish_changelog import publish_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from psycopg2.extensions import connection as Connection
    from pyspark.sql import SparkSession

    from lockstep.control.erased import Erasure, Offsets
    from lockstep.definition import View
    from lockstep.erase.scan import Scan
    from lockstep.settings import Settings

# Who holds the intervals of the tables.
HOLDER = "erase"
# A query that was just stopped finishes its micro-batch, and a task its table.
_WAIT_SECONDS = 30


def catch_up(spark: "SparkSession", settings: "Settings", contracts: "Sequence[Contract]") -> None:
    """Take what Kafka has of the streams now: what bronze lacks cannot be found there."""
    for contract in behind(settings, contracts):
        # What comes meanwhile is not waited for: of a busy topic, there is always more.
        ends = topic_offsets(settings, contract.topic).stable_ends
        while ingest(spark, settings, contract, HOLDER, ends):
            pass


def tables_of(settings: "Settings", names: "list[str]") -> list[str]:
    """The tables of the streams, and of the views that read them, which have a ledger."""
    of_streams = [t for name in names for t in _tables(CONTRACTS[name])]
    of_views = [gold_of(view) for view in views.views_of(settings, dict.fromkeys(names))]
    return [table for table in [*of_streams, *of_views] if lake.exists(settings, table)]


def running_queries(settings: "Settings", asked: Asked) -> list[str]:
    """The views whose live queries must be stopped before this can be erased."""
    of_live = live.affected(settings, dict.fromkeys(contract.name for contract in asked.contracts))
    by_lease = {_lease_of(view): view.name for view in of_live}
    return sorted(by_lease[found.name] for found in leases.held(settings, by_lease) if found.name)


def _lease_of(view: "View") -> str:
    return f"checkpoint:{view.name}"


@dataclass(frozen=True)
class Done:
    """An erasure that was carried out.

    Args:
        receipt: see :mod:`lockstep.erase.receipt`.
        file: where it is.
    """

    receipt: Mapping[str, Any]
    file: "Path"


def erase(
    spark: "SparkSession", settings: "Settings", asked: Asked, by: str, reason: str, approved_by: str | None = None
) -> Done | None:
    """Erase what is asked for in all layers, and look for it everywhere, before and after.

    Where nothing is left to be erased of what was erased before, all places are looked at again, and the receipt keeps what was
    found the first time.

    Args:
        by: who asks for it.
        approved_by: who has approved it; None: nobody was asked.

    Returns:
        The receipt; None: nothing was ever found, and nothing changed.

    Raises:
        ErasureRefused: an environment has a sample of the records.
        IntervalHeld: a replay or a backfill needs one of the tables.
        LeaseHeld: a run, or a live query, writes one of them. Nothing was changed.
    """
    check_environments(settings)
    remove_what_is_shuffled(spark)
    with _alone(spark, settings, asked) as control:
        subject = token(asked.name)
        known = [one for one in erased.every(settings) if one.subject == subject]
        died = [(one, _known(settings, one)) for one in known if one.finished_at is None]
        for one, scope in died:
            _forget(spark, settings, control, one, scope)
        found = scope_of(spark, settings, asked)
        if found.records:
            opened = _begin(settings, found, subject, by, reason, approved_by)
            failpoint("erasure-begun")
        elif known:
            opened = known[-1]
            found = _known(settings, opened)
        else:
            return None
        # Also those under the keys of before: a person who came back has another one.
        tokens = {text for one in (*known, opened) for text in one.found["tokens"]}
        needles = needles_of(asked.subject, found.values, tokens)
        # What the erasures that died had found is looked for, and done, with the rest.
        scopes = [found, *(scope for _, scope in died)]
        names = sorted({name for scope in scopes for name in scope.found})
        topics = erased.of_topics(settings, [CONTRACTS[name].topic for name in names])
        look = partial(scan, settings, needles, topics, asked.subject, {c.subject for c in asked.contracts})
        before = look()
        if opened.finished_at is None:
            _forget(spark, settings, control, opened, found)
        if asked.subject:
            # From here on nobody can make the person's tokens, and nobody finds her records, who would make her a new key.
            subject_keys.destroy(settings, subject)
            failpoint("key-destroyed")
        days = frozenset[date]().union(*(scope.days for scope in scopes))
        _scrub(spark, settings, opened, days, needles, before)
        if died or opened.finished_at is None:
            _purge(spark, settings, opened, names)
        # Spark removes the files of a shuffle once the JVM has collected what refers to them.
        spark.sql("SELECT java_method('java.lang.System', 'gc')").collect()
        after = settled(settings, needles, look())
        for one, scope in died:
            if one.number != opened.number:
                completed = receipt.receipt(one, scope, needles, before, after) | {"completed_by": opened.number}
                erased.finish(settings, one.number, completed)
                receipt.save(settings, completed)
        kept = receipt.receipt(opened, found, needles, before, after)
        if opened.receipt:
            kept = receipt.looked_again(opened.receipt, kept)
        erased.finish(settings, opened.number, kept)
        return Done(kept, receipt.save(settings, kept))


@contextmanager
def _alone(spark: "SparkSession", settings: "Settings", asked: Asked) -> "Iterator[Connection]":
    """Hold all that is written, once bronze has all that there is to find.

    Who publishes the results of a view holds its gold. So all results are in the topic by then, and none comes in meanwhile:
    those that came after the catch-up are caught up with before this begins.
    """
    names = [contract.name for contract in asked.contracts]
    results = [contract for contract in asked.contracts if contract.view]
    of_live = live.affected(settings, dict.fromkeys(names))
    # The live queries first: what they have read, and made tokens of, is then in bronze too, where it is found.
    with lease(settings, [HOLDER, *map(_lease_of, of_live)], HOLDER, _WAIT_SECONDS):
        while True:
            catch_up(spark, settings, asked.contracts)
            held = sorted({*tables_of(settings, names), *(Tables.of(c).log for c in asked.contracts)})
            with (
                intervals.backfilling(settings, HOLDER, dict.fromkeys(held, intervals.ALWAYS)),
                lease(settings, held, HOLDER, _WAIT_SECONDS) as control,
            ):
                if not behind(settings, results):
                    yield control
                    return


def needles_of(subject: str, values: "Iterable[str]", tokens: "Iterable[str]") -> Needles:
    """What the scanner looks for: what names the person, and the tokens of it."""
    named = {"the subject": subject, "the token of the subject": token(subject)} if subject else {}
    named |= {f"value {number}": value for number, value in enumerate(sorted(values), 1)}
    return Needles(named | {f"token {number}": value for number, value in enumerate(sorted(tokens), 1)})


def _begin(
    settings: "Settings", found: Scope, subject: str, by: str, reason: str, approved_by: str | None
) -> "Erasure":
    kept = {
        # If it is killed, its values and their key are known no more, but their tokens are.
        "tokens": sorted(found.tokens),
        "streams": {name: dict(of.counts) for name, of in found.found.items()},
        "views": {name: touched.as_json() for name, touched in found.touched.items()},
        "days": sorted(day.isoformat() for day in found.days),
    }
    records: dict[str, Offsets] = {CONTRACTS[name].topic: of.offsets for name, of in found.found.items()}
    return erased.begin(settings, subject, by, reason, kept, records, approved_by, restored.newest_known(settings))


def _known(settings: "Settings", opened: "Erasure") -> Scope:
    """What an erasure had found before it died."""
    found = {
        name: Found(erased.of_erasure(settings, opened.number, CONTRACTS[name].topic), counts)
        for name, counts in opened.found["streams"].items()
    }
    days = frozenset(map(date.fromisoformat, opened.found["days"]))
    return Scope(found, {name: Touched.of_json(of) for name, of in opened.found["views"].items()}, days)


def _forget(
    spark: "SparkSession", settings: "Settings", control: "Connection", opened: "Erasure", found: Scope
) -> None:
    for name, of in found.found.items():
        streams.redact(spark, settings, control, CONTRACTS[name], opened, of.offsets)
    failpoint("bronze-erased")
    for name, of in found.found.items():
        streams.remove(spark, settings, control, CONTRACTS[name], opened, of.offsets, of.counts)
    failpoint("silver-erased")
    for name, touched in found.touched.items():
        views.recompute(spark, settings, VIEWS[name], opened, touched)
    failpoint("gold-erased")
    of_live = live.affected(settings, found.found)
    began = live.begin_anew(spark, settings, of_live, opened, opened.reason)
    live.remove_old_state(settings, began)
    publish_all(settings, captured_tables(found.found).values())


def _scrub(
    spark: "SparkSession",
    settings: "Settings",
    opened: "Erasure",
    days: frozenset[date],
    needles: Needles,
    before: "Scan",
) -> None:
    words = needles.words
    scrub.databases(settings, opened, words)
    scrub.texts(settings, words, before.hits)
    versions = scrub.ops_tables(spark, settings, opened, words, scrub.tables_with_hits(settings, before.hits))
    versions |= marts.build_again(spark, settings, days, streams.run_id(opened))
    erased.refuse_before(settings, opened.number, versions)


def _purge(spark: "SparkSession", settings: "Settings", opened: "Erasure", names: "list[str]") -> None:
    """Remove the old versions of the tables, once their ledgers are archived."""
    tables = tables_of(settings, names)
    with archive.archiving(spark, settings, HOLDER) as take:
        for table in tables:
            take(table)
    of_live = [live_of(v) for v in live.affected(settings, dict.fromkeys(names)) if lake.exists(settings, live_of(v))]
    versions = {table: purge.purge(settings, table) for table in [*tables, *of_live]}
    erased.refuse_before(settings, opened.number, versions)
    failpoint("versions-purged")


def _tables(contract: Contract) -> list[str]:
    tables = Tables.of(contract)
    return [table for table in (tables.bronze, tables.quarantine, tables.log, tables.current) if table]
