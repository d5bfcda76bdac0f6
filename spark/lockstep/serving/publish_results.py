"""Publish the final rows of views in their streams of results (:mod:`.results_topic`), after they have passed their gate.

A fenced producer sends what differs (:class:`~lockstep.sinks.kafka_senders.ExactlyOnce`), and only once silver has all that was
sent before: so silver's rows are those of the topic, and what a run that died has sent is not sent again.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.control import records
from lockstep.control.leases import lease
from lockstep.control.records import Record
from lockstep.definition.registry import with_results
from lockstep.definition.tables import Tables, gold_of
from lockstep.errors import Failures, LeaseHeld, LedgerBroken
from lockstep.ingest import bronze
from lockstep.kafka_clients import configs, create_topics
from lockstep.refine import silver
from lockstep.serving.merged import seen, visible
from lockstep.serving.publish_changelog import pieces
from lockstep.serving.results_topic import (
    Published,
    Step,
    change,
    differences,
    final_column,
    next_number,
    next_until,
    published,
    step_of,
    touched,
    written_since,
)
from lockstep.sinks import kafka_senders
from lockstep.sinks.kafka_senders import BATCHES_TOPIC, ExactlyOnce

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.definition import View
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
# Whom the lease of gold names.
HOLDER = "publish_results"
_WAIT_SECONDS = 5
# Rows that are compared at once: they are held in memory, and so long nobody else writes gold.
AT_ONCE = 200_000
# Of a record of PostgreSQL: up to where each stream has its view's results.
_RECORDS = "results"


def publish_all(settings: "Settings", contracts: "Iterable[Contract]") -> dict[str, int]:
    """Publish the final rows of views that their streams do not have yet; the number of changes by stream.

    An environment publishes nothing: it reads the topics of production. What is being written waits for the next run.

    Raises:
        SomeFailed: the logs of some views are torn. The results of all others are published.
        DeliveryFailed: Kafka did not take the changes; run it again.
        Fenced: another process publishes the stream.
    """
    if settings.env:
        return {}
    sent: dict[str, int] = {}
    torn = Failures()
    for contract, view in with_results(contracts):
        # An erasure holds it from before it looks for records, so none of the person comes into the topic after that.
        try:
            with torn.of(contract.name, LedgerBroken), lease(settings, gold_of(view), HOLDER, _WAIT_SECONDS):
                entry = seen(settings, view, visible(settings))
                if entry and entry.until:
                    sent[contract.name] = publish(settings, contract, view, entry)
        except LeaseHeld as held:
            log.info("%s waits for the next run: %s", contract.name, held)
    torn.check("The results of views")
    return {name: count for name, count in sent.items() if count}


def publish(settings: "Settings", contract: "Contract", view: "View", entry: ledger.Entry) -> int:
    """Publish what is final in an entry of gold, and what the stream does not have yet; how many changes there were.

    The caller holds the lease of gold. Nothing is published while silver lacks what was sent before: the next run does it.
    Of more rows than are compared at once, the first are published, and the next runs go on from there.

    Raises:
        DeliveryFailed, Fenced: see :func:`publish_all`.
    """
    there = lake.types(settings, gold_of(view), entry.version)
    before, now = _published(settings, contract.name), published(entry, (n for n in contract.columns if n in there))
    if before == now:
        return 0
    kept = {"num_partitions": contract.partitions, "configs": configs(contract)}
    create_topics(settings, {contract.topic: kept, **BATCHES_TOPIC})
    sender = ExactlyOnce(settings, _name(contract.name), contract.topic, 1)
    newest = sender.open()
    # Whoever sent before is fenced now, so nothing is added meanwhile.
    if bronze.behind(settings, [contract]) or silver.behind(settings, contract):
        log.info("%s waits until silver has what was published before", contract.name)
        return 0
    log_entry = ledger.latest(settings, Tables.of(contract).log)
    number = next_number(int(newest["batch_id"]), log_entry.commits if log_entry else {})
    sent = 0
    # The next step compares with silver, which has to read first what this one sends.
    while before != now and not sent:
        step = _next_step(settings, contract, view, before, now)
        for rows, _ in pieces(_differences(settings, contract, view, step)):
            if rows:
                sent += sender.send([change(*row, number, now) for row in rows], number)
                number += 1
        _remember(settings, contract.name, step.published.fields)
        before = step.published
    return sent


def unpublished_since(settings: "Settings", contracts: "Iterable[Contract]") -> dict[str, datetime]:
    """By stream that does not have all final rows of its view: since when gold has more (UTC).

    A view whose log is torn is left out: nobody knows what it has, and `status` names it.
    """
    streams = with_results(contracts)
    versions = visible(settings) if streams else {}
    since: dict[str, int | None] = {}
    for contract, view in streams:
        with suppress(LedgerBroken):
            since[contract.name] = _first_unpublished(settings, contract, view, seen(settings, view, versions))
    return {name: datetime.fromtimestamp(at / 1000, UTC) for name, at in since.items() if at is not None}


def _first_unpublished(
    settings: "Settings", contract: "Contract", view: "View", newest: ledger.Entry | None
) -> int | None:
    """When gold got the first rows that readers may see and that were not published (milliseconds, UTC); None: there are none."""
    before, first = _published(settings, contract.name), None
    for entry in ledger.entries(settings, gold_of(view)) if newest else ():
        if before and before.has(entry):
            break
        if newest and entry.version <= newest.version:
            first = entry.committed_at
    return first


def forget(settings: "Settings", stream: str) -> None:
    """Forget what was published in the stream of a view's results, which is about to be removed. Its topic stays."""
    if _published(settings, stream):
        kafka_senders.forget(settings, _name(stream))
        _remember(settings, stream, {})


def _next_step(
    settings: "Settings", contract: "Contract", view: "View", before: Published | None, now: Published
) -> Step:
    gold, current = gold_of(view), Tables.of(contract).current
    compared = touched(view, before, now, written_since(before, now, lake.commits(settings, gold)))
    whole, column = step_of(view, compared, now.final_until, now), final_column(view)
    rows = chain(
        _rows(settings, gold, whole.wanted, (column,), now.version), _alive(settings, current, whole.there, (column,))
    )
    return step_of(view, compared, next_until((row[column] for row in rows), AT_ONCE, now), now)


def _differences(
    settings: "Settings", contract: "Contract", view: "View", step: Step
) -> Iterator[tuple[str, Any, Any]]:
    now = step.published
    wanted = _rows(settings, gold_of(view), step.wanted, now.columns, now.version)
    there = _alive(settings, Tables.of(contract).current, step.there, now.columns)
    return differences(wanted, there, contract.unique_id)


def _alive(settings: "Settings", current: str | None, where: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The rows that the topic has, as silver knows them."""
    if current and lake.exists(settings, current):
        yield from _rows(settings, current, f"NOT _deleted AND ({where})", columns)


def _rows(
    settings: "Settings", table: str, where: str, columns: Sequence[str], version: int | None = None
) -> Iterator[dict[str, Any]]:
    from lockstep.lake.small_commits import batches

    for batch in batches(settings, table, where, columns, version):
        yield from batch.to_pylist()


def _published(settings: "Settings", stream: str) -> Published | None:
    record = records.of_key(settings, _RECORDS, stream)
    return Published.of(record.fields) if record else None


def _name(stream: str) -> str:
    """Of the transactional id."""
    return f"results.{stream}"


def _remember(settings: "Settings", stream: str, fields: Mapping[str, Any]) -> None:
    at = datetime.now(UTC)
    records.put(settings, _RECORDS, [Record(stream, int(at.timestamp() * 1000), fields, at)])
