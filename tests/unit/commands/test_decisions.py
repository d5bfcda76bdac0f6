"""What a partition decides is a pure function of its records; a snapshot and the events after it are as good as all events."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.commands.aggregate import Event, Rejection
from lockstep.commands.decisions import Partition, fold
from lockstep.commands.errors import LogUnreadable
from lockstep.commands.history import at, steps
from lockstep.commands.records import (
    POSITION,
    Record,
    event_value,
    partition_of,
    read_event,
    read_snapshot,
    snapshot_records,
)
from shop.aggregates.accounts import AGGREGATE, Deposit, Open, Transfer, Withdraw

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
BANK = replace(AGGREGATE, partitions=1, dedup_window=timedelta(minutes=10))
NAMES, AMOUNTS = st.sampled_from(["ann", "bob", "cid"]), st.integers(1, 50)
COMMANDS = st.one_of(
    st.builds(Open, ledger=st.just("GBP"), account=NAMES),
    st.builds(Deposit, ledger=st.just("GBP"), account=NAMES, amount=AMOUNTS),
    st.builds(Withdraw, ledger=st.just("GBP"), account=NAMES, amount=AMOUNTS),
    st.builds(Transfer, ledger=st.just("GBP"), account=NAMES, to_account=NAMES, amount=AMOUNTS),
)


def record(command, offset, minutes=0.0):
    value = command.model_dump_json().encode()
    return Record("accounts.commands", 0, offset, b"GBP", value, START + timedelta(minutes=minutes))


def decided(partition, commands):
    return [event for n, command in enumerate(commands) for event in partition.decide(record(command, n))[1]]


def logged(events):
    """The events as they come back from the log."""
    records = [Record("accounts.events", 0, n, e.key.encode(), event_value(e), e.at) for n, e in enumerate(events)]
    return [read_event(BANK, one) for one in records]


@given(st.lists(COMMANDS, max_size=40), st.lists(st.integers(0, 40), max_size=4))
def test_a_snapshot_and_the_events_after_it_are_as_good_as_all_events(commands, saved_at):
    events = logged(decided(Partition(BANK, 0), commands))
    # A compacted topic has the newest record of each key.
    topic, partition = {}, Partition(BANK, 0)
    for n, event in enumerate(events, 1):
        partition.fold(event)
        if n in saved_at:
            topic |= dict(snapshot_records(BANK, partition.entities, partition.changed, n))
            partition.saved()
    saved = read_snapshot(BANK, topic)
    assert fold(BANK, events[saved.position :], saved.entities) == fold(BANK, events)
    assert saved.position == max([n for n in saved_at if 0 < n <= len(events)], default=0)


@given(st.lists(COMMANDS, max_size=60))
def test_after_every_event_the_ledger_sums_to_zero_and_no_account_is_below_zero(commands):
    partition = Partition(BANK, 0)
    for n, command in enumerate(commands):
        partition.decide(record(command, n))
        balances = {name: entity.state.balance for (_, name), entity in partition.entities.items()}
        assert sum(balances.values()) == 0
        assert all(balance >= 0 for name, balance in balances.items() if name != "outside")


@given(st.lists(COMMANDS, max_size=40))
def test_each_command_has_an_outcome_and_only_accepted_ones_have_events(commands):
    partition = Partition(BANK, 0)
    events = decided(partition, commands)
    assert [*partition.outcomes] == [command.command_id for command in commands]
    accepted = [o for o in partition.outcomes.values() if o.status == "accepted"]
    assert [e for o in accepted for e in o.events] == [e.event_id for e in events]
    assert all(o.reason for o in partition.outcomes.values() if o.status == "rejected")


@given(st.lists(COMMANDS, max_size=30), st.data())
def test_the_state_at_a_moment_is_what_the_events_up_to_it_add_up_to(commands, data):
    partition = Partition(BANK, 0)
    events = [e for n, c in enumerate(commands) for e in partition.decide(record(c, n, minutes=n))[1]]
    moment = START + timedelta(minutes=data.draw(st.integers(-1, 31)))
    expected = fold(BANK, [e for e in events if e.at <= moment]).get(("GBP", "ann"))
    found = at(BANK, steps(BANK, events, "GBP", "ann"), moment)
    assert (found.version, found.state) == ((expected.version, expected.state) if expected else (0, BANK.initial))


@pytest.mark.parametrize(
    "value",
    [
        '{"command_id": "c1", "type": ["open"]}',
        '{"command_id": "\\ud800", "type": "open"}',
        '{"command_id": "c1", "\\ud800": 1}',
        '{"command_id": "c1", "type": "open", "ledger": "GBP", "account": "a\\u0000"}',
        json.dumps({"command_id": "c" * 600_000}),
        json.dumps({"command_id": "c1", "type": "open"} | dict.fromkeys(map(str, range(30_000)), 1)),
        "[" * 100_000,
        '{"command_id": "c1", "type": ' + "[" * 700 + "]" * 700 + "}",
        "null",
        "",
    ],
    ids=[
        "a list as type",
        "half a pair",
        "half a pair as name",
        "nul",
        "long id",
        "many fields",
        "deep",
        "deep within",
        "null",
        "empty",
    ],
)
def test_whatever_is_sent_is_answered_by_a_rejection_that_fits_into_a_record(value):
    partition = Partition(BANK, 0)
    command_id, events = partition.decide(Record("accounts.commands", 0, 7, b"GBP", value.encode(), START))
    outcome = partition.outcomes[command_id]
    assert (events, outcome.reason) == ([], "invalid_command")
    assert len(outcome.command_id.encode() + outcome.model_dump_json().encode()) < 10_000
    assert partition.position == 8


def test_a_command_that_is_sent_again_within_the_window_is_answered_and_after_it_decided_again():
    partition, once = Partition(BANK, 0), Deposit(ledger="GBP", account="ann", amount=1)
    partition.decide(record(Open(ledger="GBP", account="ann"), 0))
    for offset, (minutes, new) in enumerate([(0, 1), (5, 0), (9, 0), (11, 1)], 1):
        partition.decide(record(Withdraw(ledger="GBP", account="ann", amount=99), 100 + offset, minutes))
        partition.forget()
        assert len(partition.decide(record(once, offset, minutes))[1]) == new


def test_times_of_events_never_fall_even_where_the_brokers_clock_does():
    partition = Partition(BANK, 0)
    commands = [Open(ledger="GBP", account=name) for name in ("ann", "bob", "cid")]
    times = [
        partition.decide(record(c, n, m))[1][0].at for n, (c, m) in enumerate(zip(commands, (5, 1, 6), strict=True))
    ]
    assert times == [START + timedelta(minutes=m) for m in (5, 5, 6)]


def test_no_event_is_older_than_what_its_log_has_passed():
    partition = Partition(BANK, 0)
    commands = [Open(ledger="GBP", account=name) for name in ("ann", "bob", "cid")]
    times = []
    for number, (command, passed) in enumerate(zip(commands, (None, 3, 1), strict=True)):
        partition.pass_to(passed and START + timedelta(minutes=passed))
        times.append(partition.decide(record(command, number))[1][0].at)
    assert times == [START + timedelta(minutes=m) for m in (0, 3, 3)]


def test_a_snapshot_by_another_evolve_is_left_out():
    partition = Partition(BANK, 0)
    decided(partition, [Open(ledger="GBP", account="ann")])
    topic = dict(snapshot_records(BANK, partition.entities, partition.changed, 1))
    assert read_snapshot(BANK, topic).position == 1
    mark = json.loads(topic[POSITION]) | {"version": "another"}
    assert read_snapshot(BANK, topic | {POSITION: json.dumps(mark).encode()}).entities == {}


def test_an_event_that_no_aggregate_declares_is_named_with_its_place():
    with pytest.raises(LogUnreadable, match=r"accounts\.events-0@7 is none that accounts declares"):
        read_event(BANK, Record("accounts.events", 0, 7, b"GBP", b'{"type": "robbed"}', START))


def test_keys_go_to_the_partitions_that_javas_clients_choose():
    # Of org.apache.kafka.clients.producer.internals.BuiltInPartitioner with 1,000 partitions.
    assert {key: partition_of(key, 1000) for key in ("21", "foobar")} == {
        "21": _java(-973932308),
        "foobar": _java(-790332482),
    }


def _java(murmur2):
    return (murmur2 & 0x7FFFFFFF) % 1000


def test_what_cannot_run_says_why():
    class Untyped(Event):
        event_id: str = ""

    problems = replace(BANK, events=(Untyped,), partitions=0).problems
    assert [problem.split(" ")[0] for problem in problems] == ["Untyped", "Untyped.event_id", "partitions"]
    assert BANK.problems == []
    assert Rejection("r").detail == ""
