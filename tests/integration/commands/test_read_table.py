"""A read view in PostgreSQL follows the log, shows no half event, and is rebuilt from the log alone."""

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

from lockstep.commands.read_table import project, rebuild, search
from lockstep.control.database import control
from lockstep.erase import scrub
from shop.aggregates.accounts import Deposit, Open, Transfer, evolve


def of(kind, account, ledger="GBP", **fields):
    return kind(ledger=ledger, account=account, **fields)


def rows(settings, name):
    """Balance and version of each account, as any client of PostgreSQL reads them."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT entity, state ->> 'balance', version FROM read_entities WHERE aggregate = %s", (name,))
        return {entity: (Decimal(balance), version) for entity, balance, version in cursor.fetchall()}


def test_a_reader_sees_balances_that_sum_to_zero_at_every_moment_while_transfers_go_on(bank, settings):
    accounts, name = bank(), ["ann", "bob", "cid"]
    sums, done, chance = [], Event(), random.Random(18)

    def follow():
        while not done.is_set():
            project(settings, accounts.aggregate)

    def look():
        while not done.is_set():
            sums.append(sum(balance for balance, _ in rows(settings, accounts.aggregate.name).values()))

    with accounts.deciding(), ThreadPoolExecutor(3) as pool:
        try:
            # Two of them: each waits for the other, and goes on from where it stopped.
            running = [pool.submit(follow), pool.submit(follow), pool.submit(look)]
            for account in name:
                accounts.send(of(Open, account))
                accounts.send(of(Deposit, account, amount=100))
            for _ in range(60):
                payer, payee = chance.sample(name, 2)
                accounts.send(of(Transfer, payer, to_account=payee, amount=chance.randint(1, 20)))
        finally:
            done.set()
        for each in running:
            each.result()
    assert len(sums) > 10
    assert set(sums) == {0}
    project(settings, accounts.aggregate)
    expected = {"outside": Decimal(0)}
    for event in accounts.read("events"):
        if "amount" in event:
            for account, sign in ((event["to_account"], 1), (event["from_account"], -1)):
                expected[account] = expected.get(account, 0) + sign * Decimal(event["amount"])
    assert {account: balance for account, (balance, _) in rows(settings, accounts.aggregate.name).items()} == expected


def test_it_is_rebuilt_from_the_log_alone_and_by_another_evolve_by_itself(bank, settings):
    accounts = bank(partitions=3)
    with accounts.deciding():
        for ledger in ("GBP", "EUR", "USD"):
            accounts.send(of(Open, "ann", ledger))
            accounts.send(of(Deposit, "ann", ledger, amount=7))
    assert project(settings, accounts.aggregate) == 6
    assert project(settings, accounts.aggregate) == 0
    found = search(settings, accounts.aggregate, "ann", limit=9)
    assert {key for key, _, _ in found} == {"GBP", "EUR", "USD"}
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "UPDATE read_entities SET version = 99, state = '{}' WHERE aggregate = %s", (accounts.aggregate.name,)
        )
    assert rebuild(settings, accounts.aggregate) == 6
    assert search(settings, accounts.aggregate, "ann", limit=9) == found

    def closed(state, entity, event):
        return evolve(state, entity, event).model_copy(update={"is_open": False})

    # Its module is another one, so the version of what it has folded is too.
    other = replace(accounts.aggregate, evolve=closed)
    assert other.version != accounts.aggregate.version
    assert project(settings, other) == 6
    assert {entity.state.is_open for _, _, entity in search(settings, other, "ann", limit=9)} == {False}


def test_an_erasure_leaves_entities_that_go_on_from_their_rows(bank, settings):
    accounts, ann = bank(), f"ann{uuid.uuid4().hex[:10]}"
    with accounts.deciding():
        accounts.send(of(Open, ann))
        accounts.send(of(Deposit, ann, amount=7))
        project(settings, accounts.aggregate)
        scrub.databases(settings, cast(Any, SimpleNamespace(number=0)), [ann])
        accounts.send(of(Deposit, ann, amount=1))
    project(settings, accounts.aggregate)
    assert rows(settings, accounts.aggregate.name) == {ann: (8, 3), "outside": (-8, 2)}


def test_words_find_entities_by_key_name_and_state_and_nothing_of_other_aggregates(bank, settings):
    accounts, others = bank(), bank()
    with accounts.deciding(), others.deciding():
        for account, amount in (("ann", "12.5"), ("bob", 3)):
            accounts.send(of(Open, account))
            accounts.send(of(Deposit, account, amount=amount))
        others.send(of(Open, "ann"))
    for one in (accounts, others):
        project(settings, one.aggregate)

    def found(words):
        return sorted(name for _, name, _ in search(settings, accounts.aggregate, words, limit=9))

    assert found("ann or bob") == ["ann", "bob"]
    assert found("gbp -bob -outside") == ["ann"]
    assert found("12.5") == ["ann"]
    assert found("nobody") == []
    assert found("'); DROP TABLE read_entities; --") == []
