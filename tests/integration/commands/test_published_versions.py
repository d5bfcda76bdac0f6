"""The shop's stream and view of the log of accounts: every version of the balances sums to zero (I8), live and in batch."""

import random
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from confluent_kafka import Producer

from lockstep import ledger, service
from lockstep.batch.rollup import roll_up
from lockstep.commands.restore import restore
from lockstep.contracts import CONTRACTS
from lockstep.contracts.contract import HEARTBEAT
from lockstep.definition.tables import gold_of, live_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config
from lockstep.reconcile.record import last
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine
from shop.aggregates.accounts import Deposit, Open, Transfer
from shop.views.account_balances import VIEW

TRANSFERS, ROUNDS = 1_000, 5
PEOPLE = [f"account-{n}" for n in range(10)]


def transfer(chance):
    payer, payee = chance.sample(PEOPLE, 2)
    return Transfer(ledger="GBP", account=payer, to_account=payee, amount=chance.randint(1, 40))


@pytest.fixture
def stream(bank, monkeypatch):
    """The events of accounts of their own, as the shop's stream of them."""
    accounts = bank()
    name = f"account_events_{uuid.uuid4().hex[:8]}"
    contract = replace(CONTRACTS["account_events"], name=name, topic=accounts.aggregate.topic("events"), partitions=1)
    monkeypatch.setitem(CONTRACTS, name, contract)
    return accounts, contract


@pytest.fixture
def view(stream):
    _, contract = stream
    inputs = tuple(replace(read, stream=contract.name) for read in VIEW.inputs)
    return replace(VIEW, name=f"account_balances_{contract.name[-8:]}", inputs=inputs)


def versions(spark, table):
    """Of each version of a table that has rows: the number of its rows, and the sum of what they have moved."""
    found = [row["version"] for row in spark.sql(f"DESCRIBE HISTORY {table}").collect()]
    of = (f"SELECT count(*) AS n, sum(posted) AS total FROM {table} VERSION AS OF {version}" for version in found)
    rows = [spark.sql(sql).first() for sql in of]
    return [(row["n"], row["total"]) for row in rows if row["n"]]


def heartbeat(settings, contract, at):
    """Let the log pass an instant without an event."""
    quiet = Producer(confluent_config(settings))
    quiet.produce(contract.topic, partition=0, headers={HEARTBEAT: b"1"}, timestamp=int(at.timestamp() * 1000))
    assert quiet.flush(30) == 0


def publish(spark, settings, contract, view):
    """Bring both layers up to the log; live in micro-batches that end anywhere."""
    ingest(spark, settings, contract, "run")
    refine(spark, settings, contract, "run")
    roll_up(spark, settings, view, "run")
    running = service.start(spark, settings.model_copy(update={"max_offsets_per_trigger": 97}), view)
    try:
        running.processAllAvailable()
    finally:
        running.stop()


def test_every_version_of_the_balances_of_a_thousand_transfers_sums_to_zero(stream, view, spark, settings):
    accounts, contract = stream
    chance, began = random.Random(8), datetime.now(UTC)

    with accounts.deciding():
        accounts.produce(*[Open(ledger="GBP", account=name) for name in PEOPLE])
        accounts.produce(*[Deposit(ledger="GBP", account=name, amount="50.001") for name in PEOPLE])
        for number in range(1, ROUNDS + 1):
            accounts.produce(*[transfer(chance) for _ in range(TRANSFERS // ROUNDS)])
            accounts.send(Deposit(ledger="GBP", account=PEOPLE[0], amount=1))
            # So that the rows of the events before it are final.
            heartbeat(settings, contract, began + number * timedelta(minutes=1))
            publish(spark, settings, contract, view)

    # The processors leave the heartbeats out, and decide nothing that is older: so no event was late.
    known = {name: one.state.balance for (_, name), one in restore(settings, accounts.aggregate, 0).entities.items()}
    for table in (gold_of(view), live_of(view)):
        sums = versions(spark, table)
        assert {total for _, total in sums} == {0}, table
        assert len({rows for rows, _ in sums}) >= ROUNDS, "each round has published some"
        newest = spark.sql(
            f"SELECT account, max_by(balance, struct(at, event_id)) AS balance FROM {table} GROUP BY account"
        )
        assert {row["account"]: row["balance"] for row in newest.collect()} == known, table
    totals = ledger.latest(settings, gold_of(view)).totals
    assert (totals["ignored"], totals["side_output"]) == (0, 0)


def test_before_the_first_command_both_layers_agree_that_there_is_nothing(stream, view, spark, settings):
    _, contract = stream
    now = datetime.now(UTC).replace(microsecond=0)
    heartbeat(settings, contract, now)
    publish(spark, settings, contract, view)
    report = reconcile(spark, settings, view, "run")
    assert (report.verdict, report.unexplained, report.windows) == ("equal", 0, 0)
    assert last(settings, view).until == now - contract.max_out_of_orderness - view.limit
    assert spark.table(gold_of(view)).isEmpty()
    assert spark.table(live_of(view)).isEmpty()
