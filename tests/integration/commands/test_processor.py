"""Commands become events, each once, while processors are killed and meet each other."""

import os
import random
import signal
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition
from tests.support.slow import slow

from lockstep.commands.aggregate import Entity
from lockstep.commands.client import send
from lockstep.commands.errors import CommandsFailed, Fenced, NoOutcome, TopicsDiffer
from lockstep.commands.history import history
from lockstep.commands.log import events
from lockstep.commands.processor import Processor
from lockstep.commands.restore import now, restore
from lockstep.commands.topics import ensure
from lockstep.contracts import CONTRACTS
from lockstep.contracts.contract import HEARTBEAT
from lockstep.deploy.topics import differences
from lockstep.kafka_clients import admin, confluent_config
from shop.aggregates.accounts import AGGREGATE, Deposit, Open, Transfer, Withdraw

TRANSFERS = 1_000
WRITERS = 4


def opened(account):
    return Open(ledger="GBP", account=account)


def deposit(account, amount, **more):
    return Deposit(ledger="GBP", account=account, amount=amount, **more)


def transfer(account, to, amount, **more):
    return Transfer(ledger="GBP", account=account, to_account=to, amount=amount, **more)


def balances(events):
    """The balances that the raw events add up to, after each of them."""
    totals = Counter()
    for event in events:
        if "amount" in event:
            totals[event["to_account"]] += Decimal(event["amount"])
            totals[event["from_account"]] -= Decimal(event["amount"])
        yield dict(totals)


@pytest.mark.parametrize(
    "crash_at",
    [
        slow("command-before:2"),
        "command-open:2",
        slow("command-committed:2"),
    ],
)
def test_commands_become_events_once_when_their_processor_is_killed(crash_at, bank):
    accounts = bank()
    commands = [
        opened("alice"),
        *(deposit("alice", 10) for _ in range(8)),
        Withdraw(ledger="GBP", account="alice", amount=99),
    ]
    accounts.produce(*commands)
    assert accounts.start(crash_at).wait(timeout=120) == -signal.SIGKILL
    second = accounts.start()
    try:
        # Commands are decided in their order, so the answer to this one comes last.
        assert accounts.send(deposit("alice", 1)).status == "accepted"
    finally:
        os.killpg(second.pid, signal.SIGKILL)
        second.wait()
    assert [e["command_id"] for e in accounts.read("events")][:-1] == [c.command_id for c in commands[:-1]]
    assert [*balances(accounts.read("events"))][-1] == {"alice": 81, "outside": -81}
    outcomes = accounts.read("outcomes")
    assert [o["command_id"] for o in outcomes[:-1]] == [c.command_id for c in commands]
    assert [o["reason"] for o in outcomes if o["status"] == "rejected"] == ["insufficient_funds"]


def test_of_two_processors_of_a_partition_the_older_is_fenced_and_nothing_of_it_is_read(bank, settings):
    accounts = bank()
    with closing(Processor(settings, accounts.aggregate, 0)) as older:
        accounts.produce(opened("alice"))
        assert older.run_once(30) == 1
        with closing(Processor(settings, accounts.aggregate, 0)) as newer:
            accounts.produce(deposit("alice", 10))
            with pytest.raises(Fenced, match="a newer processor decides"):
                older.run_once(30)
            assert [e["type"] for e in accounts.read("events")] == ["opened"]
            assert newer.run_once(30) == 1
    assert [e["type"] for e in accounts.read("events")] == ["opened", "deposited"]
    assert len(accounts.read("outcomes")) == 2


def test_a_processor_that_is_fenced_in_the_middle_of_a_transaction_leaves_nothing(bank, settings, monkeypatch):
    accounts = bank()
    accounts.produce(opened("alice"))
    older = Processor(settings, accounts.aggregate, 0)
    newer = []
    # After it has written its events, and before it commits.
    monkeypatch.setattr(
        "lockstep.commands.processor.failpoint",
        lambda name: (
            newer.append(Processor(settings, accounts.aggregate, 0)) if (name, newer) == ("command-open", []) else None
        ),
    )
    with pytest.raises(Fenced):
        older.run_once(30)
    assert accounts.read("events") == []
    assert newer[0].run_once(30) == 1
    assert [e["type"] for e in accounts.read("events")] == ["opened"]
    for processor in (older, *newer):
        processor.close()


def test_of_two_writers_who_saw_one_version_the_slower_is_refused_and_told_the_version(bank):
    accounts = bank()
    with accounts.deciding():
        seen = accounts.send(opened("alice")).version
        faster, slower = (accounts.send(deposit("alice", 10, expected_version=seen)) for _ in range(2))
        assert (faster.status, slower.status, slower.reason) == ("accepted", "rejected", "wrong_version")
        assert accounts.send(deposit("alice", 10, expected_version=slower.version)).status == "accepted"
    assert [*balances(accounts.read("events"))][-1]["alice"] == 20


def test_a_command_that_is_sent_twice_has_one_effect_and_the_same_answer_after_a_restart_too(bank):
    accounts = bank()
    once, refused = deposit("alice", 10), Withdraw(ledger="GBP", account="alice", amount=50)
    with accounts.deciding():
        accounts.send(opened("alice"))
        answers = [accounts.send(once), accounts.send(refused)]
        accounts.send(deposit("alice", 90))
        assert [accounts.send(once), accounts.send(refused)] == answers
    with accounts.deciding():
        assert [accounts.send(once), accounts.send(refused)] == answers
    accounts.produce(*[transfer("alice", "alice", 1, command_id="same")] * 3)
    with accounts.deciding():
        assert accounts.send(transfer("alice", "alice", 1, command_id="same")).reason == "same_account"
    assert Counter(e["type"] for e in accounts.read("events")) == {"opened": 1, "deposited": 2}


def test_a_processor_that_starts_when_kafka_has_forgotten_its_group_decides_nothing_again(bank, settings):
    accounts = bank(dedup_window=timedelta(0))
    with accounts.deciding():
        accounts.send(opened("alice"))
        accounts.send(deposit("alice", 10))
    group = f"lockstep.{accounts.aggregate.topic('commands')}"
    with closing(admin(settings)) as client:
        client.delete_group_offsets(group, [TopicPartition(accounts.aggregate.topic("commands"), 0)])
        assert client.list_group_offsets({group: None})[group] == {}
    with accounts.deciding():
        assert accounts.send(deposit("alice", 5)).version == 3
    assert [*balances(accounts.read("events"))][-1]["alice"] == 15


def test_no_event_is_older_than_the_heartbeats_that_came_while_its_command_waited(bank, settings):
    # Else no view would count it: where the topic is a stream, heartbeats tell views how far its time has come.
    accounts = bank()
    accounts.produce(opened("alice"))
    passed = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=1)
    quiet = Producer(confluent_config(settings))
    quiet.produce(
        accounts.aggregate.topic("events"), headers={HEARTBEAT: b"1"}, timestamp=int(passed.timestamp() * 1000)
    )
    assert quiet.flush(30) == 0
    with accounts.deciding():
        assert accounts.send(deposit("alice", 10)).version == 2
    steps = history(settings, accounts.aggregate, "GBP", "alice")
    assert [step.entity.at for step in steps] == [passed, passed]


def test_the_topic_of_a_stream_is_as_its_contract_says_where_a_processor_is_the_first_to_create_it(
    settings, monkeypatch
):
    aggregate = replace(AGGREGATE, name=f"accounts_{uuid.uuid4().hex[:8]}")
    contract = replace(CONTRACTS["page_views"], name=aggregate.name, topic=aggregate.topic("events"))
    monkeypatch.setitem(CONTRACTS, contract.name, contract)
    ensure(settings, aggregate)
    assert differences(settings, [contract]) == {}


def test_a_writer_reads_its_own_write_from_the_log(bank, settings):
    accounts = bank()
    with accounts.deciding():
        accounts.send(opened("alice"))
        for total in range(1, 6):
            outcome = accounts.send(deposit("alice", 1))
            steps = history(settings, accounts.aggregate, "GBP", "alice")
            assert (steps[-1].entity.state.balance, steps[-1].entity.version) == (total, outcome.version)


def test_a_long_history_is_not_read_again_because_a_snapshot_has_it(bank, settings, monkeypatch):
    accounts = bank(snapshot_every=10)
    with accounts.deciding():
        accounts.send(opened("alice"))
        for _ in range(24):
            accounts.send(deposit("alice", 1))
    restored = restore(settings, accounts.aggregate, 0)
    assert restored.unsaved == 5, "25 events, and a snapshot of 20"
    with_all = history(settings, accounts.aggregate, "GBP", "alice")[-1].entity
    assert restored.entities["GBP", "alice"] == with_all
    began = []
    monkeypatch.setattr("lockstep.commands.restore.events", lambda *where: began.append(where[-1]) or events(*where))
    assert now(settings, accounts.aggregate, "GBP", "alice") == with_all
    (start,) = began
    assert len([*events(settings, accounts.aggregate, 0, start)]) == 5, "and none before them"
    assert now(settings, accounts.aggregate, "GBP", "nobody") == Entity(accounts.aggregate.initial)
    with accounts.deciding():
        assert accounts.send(Withdraw(ledger="GBP", account="alice", amount=24)).status == "accepted"


def test_commands_that_make_no_sense_are_rejected_with_the_reason_and_stop_no_other(bank):
    accounts = bank()
    accounts.produce(
        b"{", b"[]", b'{"command_id": "1", "type": "rob"}', b'{"command_id": "2", "type": "deposit", "amount": "NaN"}'
    )
    accounts.produce(opened("alice"), key="another")
    with accounts.deciding():
        assert accounts.send(opened("bob")).status == "accepted"
    assert [o["reason"] for o in accounts.read("outcomes")] == ["invalid_command"] * 5 + [""]
    assert [e["account"] for e in accounts.read("events")] == ["bob"]


def test_a_command_in_another_partition_than_that_of_its_key_is_not_decided_there(bank):
    accounts = bank(partitions=3)
    for partition in range(3):
        accounts.produce(opened("alice"), partition=partition)
    with accounts.deciding():
        assert accounts.send(opened("bob")).status == "accepted"
        assert accounts.send(opened("alice")).reason == "already_open"
        # The other partitions are decided by others, who may still be at it.
        reasons = Counter(o["reason"] for o in accounts.outcomes(5))
    assert reasons == {"": 2, "wrong_partition": 2, "already_open": 1}


def test_other_numbers_of_partitions_than_declared_are_refused(bank, settings):
    accounts = bank(partitions=2)
    with pytest.raises(TopicsDiffer, match="there are other numbers"):
        ensure(settings, replace(accounts.aggregate, partitions=3))


def test_a_defect_in_decide_stops_the_processor_at_the_command_and_none_is_lost(bank, settings):
    accounts = bank()
    accounts.produce(opened("alice"), deposit("alice", 10))
    broken = replace(accounts.aggregate, decide=lambda *_: 1 / 0)
    with (
        closing(Processor(settings, broken, 0)) as processor,
        pytest.raises(CommandsFailed, match=r"commands-0@0 cannot"),
    ):
        processor.run_once(30)
    with accounts.deciding():
        assert accounts.send(deposit("alice", 1)).status == "accepted"
    assert [*balances(accounts.read("events"))][-1]["alice"] == 11


def test_a_sender_without_a_processor_is_told_and_has_its_answer_later(bank, settings):
    accounts, command = bank(), opened("alice")
    with pytest.raises(NoOutcome, match=command.command_id):
        send(settings, accounts.aggregate, command, seconds=0.1)
    with accounts.deciding():
        assert accounts.send(command).status == "accepted"
    assert len(accounts.read("events")) == 1


def test_after_every_event_of_a_thousand_transfers_by_concurrent_writers_the_sum_is_zero(bank):
    accounts, people = bank(), [f"account-{n}" for n in range(10)]

    def write(seed):
        chance = random.Random(seed)
        for _ in range(TRANSFERS // WRITERS):
            payer, payee = chance.sample(people, 2)
            yield accounts.send(transfer(payer, payee, chance.randint(1, 60)))

    with accounts.deciding():
        for name in people:
            accounts.send(opened(name))
            accounts.send(deposit(name, 100))
        with ThreadPoolExecutor(WRITERS) as pool:
            outcomes = [o for done in pool.map(lambda seed: [*write(seed)], range(WRITERS)) for o in done]
    events = accounts.read("events")
    for totals in balances(events):
        assert sum(totals.values()) == 0
        assert all(balance >= 0 for name, balance in totals.items() if name != "outside")
    accepted = [o for o in outcomes if o.status == "accepted"]
    refused = [o for o in outcomes if o.status == "rejected"]
    assert {o.reason for o in refused} == {"insufficient_funds"}
    assert len(accepted) + len(refused) == TRANSFERS
    transferred = [e["command_id"] for e in events if e["type"] == "transferred"]
    assert sorted(transferred) == sorted(o.command_id for o in accepted), (
        "each accepted one is one event, a rejected one is none"
    )
