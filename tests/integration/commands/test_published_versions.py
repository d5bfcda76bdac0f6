"""The log of events as a stream of the lake: every version of the balances sums to zero (I8)."""

import random
import sys
import time
import uuid
from datetime import timedelta
from decimal import Decimal

import pytest
from confluent_kafka import Producer
from pyspark import cloudpickle

from lockstep.batch.rollup import roll_up
from lockstep.commands.restore import restore
from lockstep.contracts import CONTRACTS, Contract
from lockstep.contracts.contract import HEARTBEAT
from lockstep.definition import Input, Keyed
from lockstep.definition.tables import gold_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config
from lockstep.refine.silver import refine
from shop.aggregates.accounts import Deposit, Open, Transfer

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

TRANSFERS, ROUNDS = 1_000, 5
PEOPLE = [f"account-{n}" for n in range(10)]


def post(state, event):
    """Two rows for each event: what left one account, and what came to the other."""
    amount, balances = event.data["amount"], dict(state or {})
    rows = []
    for account, posted in ((event.data["from_account"], -amount), (event.data["to_account"], amount)):
        balances[account] = balances.get(account, Decimal(0)) + posted
        rows.append({"account": account, "event_id": event.id, "posted": posted, "balance": balances[account]})
    return balances, rows


def transfer(chance):
    payer, payee = chance.sample(PEOPLE, 2)
    return Transfer(ledger="GBP", account=payer, to_account=payee, amount=chance.randint(1, 40))


@pytest.fixture
def stream(bank):
    """The events of accounts of their own, as a stream; its producer is one processor, so nothing comes out of order."""
    accounts = bank()
    contract = Contract(
        name=f"postings_{uuid.uuid4().hex[:8]}",
        topic=accounts.aggregate.topic("events"),
        kind="events",
        columns={
            "event_id": "STRING",
            "event_time": "TIMESTAMP",
            "command_id": "STRING",
            "type": "STRING",
            "ledger": "STRING",
            "account": "STRING",
            "from_account": "STRING",
            "to_account": "STRING",
            "amount": "DECIMAL(14,3)",
        },
        key=("ledger",),
        unique_id=("event_id",),
        event_time="event_time",
        max_out_of_orderness=timedelta(0),
        partitions=1,
    )
    CONTRACTS[contract.name] = contract
    yield accounts, contract
    del CONTRACTS[contract.name]


def test_every_version_of_the_balances_of_a_thousand_transfers_sums_to_zero(stream, spark, settings):
    accounts, contract = stream
    view = Keyed(
        name=f"balances_{contract.name[-8:]}",
        columns={"account": "STRING", "event_id": "STRING", "posted": "DECIMAL(14,3)", "balance": "DECIMAL(17,3)"},
        key=("account", "event_id"),
        allowed_lateness=timedelta(0),
        inputs=(Input(contract.name, "ledger", ("from_account", "to_account", "amount"), where="amount IS NOT NULL"),),
        process=post,
    )
    chance = random.Random(8)

    def publish():
        ingest(spark, settings, contract, "run")
        refine(spark, settings, contract, "run")
        roll_up(spark, settings, view, "run")

    with accounts.deciding():
        accounts.produce(*[Open(ledger="GBP", account=name) for name in PEOPLE])
        accounts.produce(*[Deposit(ledger="GBP", account=name, amount=50) for name in PEOPLE])
        for _ in range(ROUNDS):
            accounts.produce(*[transfer(chance) for _ in range(TRANSFERS // ROUNDS)])
            accounts.send(Deposit(ledger="GBP", account=PEOPLE[0], amount=1))
            publish()
    # Time goes on, so that the newest events are final.
    now = int(time.time() * 1000)
    quiet = Producer(confluent_config(settings))
    quiet.produce(contract.topic, partition=0, headers={HEARTBEAT: b"1"}, timestamp=now + 5_000)
    assert quiet.flush(30) == 0
    publish()

    table = gold_of(view)
    versions = [row["version"] for row in spark.sql(f"DESCRIBE HISTORY {table}").collect()]
    sums = [
        spark.sql(
            f"SELECT coalesce(sum(posted), 0) AS total, count(*) AS n FROM {table} VERSION AS OF {version}"
        ).first()
        for version in versions
    ]
    assert {row["total"] for row in sums} == {0}
    assert len({row["n"] for row in sums} - {0}) >= ROUNDS, "each round has published some"
    # The processors leave the heartbeats out, too.
    known = restore(settings, accounts.aggregate, 0).entities
    totals = spark.sql(f"SELECT account, sum(posted) AS total FROM {table} GROUP BY account").collect()
    assert {row["account"]: row["total"] for row in totals} == {
        name: entity.state.balance for (_, name), entity in known.items()
    }
