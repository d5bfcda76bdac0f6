"""A roll-up of a few rows goes on from the machines of the last one, unless they do not fit any more."""

import json
import sys
import uuid
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from itertools import islice

import pytest
from confluent_kafka import Producer
from pyspark import cloudpickle
from tests.support.records import at, change_record
from tests.support.tables import rows_of

from lockstep import ledger
from lockstep.batch import going_on
from lockstep.batch.prepare import prepare
from lockstep.batch.rollup import roll_up
from lockstep.contracts import CONTRACTS
from lockstep.definition import Input, Keyed
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import BEGINNING
from lockstep.errors import ViewRefused
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.lake import writes
from lockstep.refine.silver import refine

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def numbered(state, event):
    """Number the events of a user."""
    number = (state or 0) + 1
    return number, [{"event_id": event.data["event_id"], "number": number}]


def numbered_from_the_other_side(state, event):
    """Number them below zero."""
    number = (state or 0) - 1
    return number, [{"event_id": event.data["event_id"], "number": number}]


@pytest.fixture
def view(stream):
    """A view that numbers the events of a user: each row depends on all events before it."""
    return Keyed(
        name=f"numbered_{stream.name[-8:]}",
        columns={"event_id": "STRING", "number": "BIGINT"},
        key=("event_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("event_id",)),),
        process=numbered,
    )


@pytest.fixture
def numbers(spark, settings, stream, shop):
    """Send an event for each id, roll the view up, and read the number of each event so far."""
    sent = []

    def roll(view, *ids):
        for id_ in ids:
            sent.append(id_)
            shop.view(id_, len(sent) * 60)
        shop.heartbeat(len(sent) * 60 + 30)
        shop.flush()
        ingest(spark, settings, stream, "run")
        refine(spark, settings, stream, "run")
        roll_up(spark, settings, view, "run")
        return {row["event_id"]: row["number"] for row in rows_of(spark, settings, gold_of(view))}

    return roll


def refuse(*_):
    """Stands for what reads history."""
    raise AssertionError("history was read")


@pytest.fixture
def no_history(monkeypatch):
    """Machines cannot be computed from silver."""
    monkeypatch.setattr(going_on, "rows_and_machines", refuse)


def test_machines_go_on_after_and_with_more_new_rows_than_are_worked_on_without_spark(view, numbers, monkeypatch):
    monkeypatch.setattr(writes, "SMALL_ROWS", 0)
    numbers(view, "a")
    monkeypatch.setattr(going_on, "rows_and_machines", refuse)
    assert numbers(view, "b", "c") == {"a": 1, "b": 2, "c": 3}


def test_history_is_read_once_for_gold_and_for_the_machines_that_go_on_after_it(view, numbers, monkeypatch):
    monkeypatch.setattr(writes, "SMALL_ROWS", 0)
    asked = []
    monkeypatch.setattr(going_on, "rows_and_machines", lambda *all_: asked.append(all_) or from_history(*all_))
    assert numbers(view, "a", "b") == {"a": 1, "b": 2}
    assert numbers(view, "c") == {"a": 1, "b": 2, "c": 3}
    assert len(asked) == 1


def test_a_large_slice_of_which_nothing_is_final_is_taken(spark, settings, stream, shop, view, numbers, monkeypatch):
    monkeypatch.setattr(writes, "SMALL_ROWS", 0)
    shop.view("early", 0)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    assert roll_up(spark, settings, view, "run").until == BEGINNING
    assert numbers(view, "a") == {"early": 1, "a": 2}


def test_a_roll_up_reads_no_history(settings, view, numbers, no_history):
    assert numbers(view, "a", "b") == {"a": 1, "b": 2}
    assert numbers(view, "c") == {"a": 1, "b": 2, "c": 3}
    assert numbers(view, "d")["d"] == 4


def test_a_view_that_fails_stops_no_view_whose_events_are_found_with_its_own(spark, settings, stream, shop, view):
    refusing = replace(view, name=f"refusing_{view.name}", inputs=(Input(stream.name, "raise_error('refused')"),))
    shop.view("a", 60)
    shop.heartbeat(90)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    prepared = prepare(settings, [view, refusing], lambda: nullcontext(spark))
    assert roll_up(spark, settings, view, "run", prepared[view.name]).counts["counted"] == 1
    with pytest.raises(ViewRefused, match="refused"):
        roll_up(spark, settings, refusing, "run", prepared[refusing.name])


def test_what_was_prepared_is_not_used_once_gold_has_gone_on(spark, settings, stream, shop, view, numbers):
    numbers(view, "a")
    shop.view("b", 120)
    shop.heartbeat(150)
    shop.flush()
    ingest(spark, settings, stream, "run")
    refine(spark, settings, stream, "run")
    prepared = prepare(settings, [view], lambda: nullcontext(spark))[view.name]
    roll_up(spark, settings, view, "another run")
    assert roll_up(spark, settings, view, "run", prepared) is None
    assert {row["event_id"]: row["number"] for row in rows_of(spark, settings, gold_of(view))} == {"a": 1, "b": 2}


def test_machines_of_the_last_roll_ups_are_kept(settings, view, numbers):
    for event in "abcdefg":
        numbers(view, event)
    last = [entry.machines for entry in islice(ledger.entries(settings, gold_of(view)), 5)]
    assert sorted(going_on.SavedMachines(settings, view.name).names()) == sorted(last)


def test_machines_that_are_lost_are_computed_again(settings, view, numbers):
    numbers(view, "a", "b")
    going_on.SavedMachines(settings, view.name).remove_all_but([])
    assert numbers(view, "c")["c"] == 3


def test_machines_of_another_definition_are_computed_again(view, numbers):
    numbers(view, "a", "b")
    changed = replace(view, process=numbered_from_the_other_side)
    assert numbers(changed, "c") == {"a": 1, "b": 2, "c": -3}


def test_machines_are_computed_again_when_somebody_has_changed_silver(spark, stream, view, numbers):
    numbers(view, "a", "b")
    spark.sql(f"DELETE FROM {Tables.of(stream).log} WHERE event_id = 'a'")
    assert numbers(view, "c")["c"] == 2


def test_machines_are_computed_again_when_somebody_has_changed_gold(spark, view, numbers, monkeypatch):
    numbers(view, "a", "b")
    spark.sql(f"DELETE FROM {gold_of(view)} WHERE event_id = 'a'")
    asked = []
    monkeypatch.setattr(going_on, "rows_and_machines", lambda *all_: asked.append(all_) or from_history(*all_))
    assert numbers(view, "c") == {"b": 2, "c": 3}
    assert asked


from_history = going_on.rows_and_machines


def aged(state, event):
    """The age of a user."""
    return {"known": True}, [{"user_id": event.data["user_id"], "age": event.data["age"]}]


def aged_twice(state, event):
    """Twice the age."""
    return {"known": True}, [{"user_id": event.data["user_id"], "age": 2 * event.data["age"]}]


@pytest.fixture
def ages(spark, settings, monkeypatch):
    """Send a change of each user's age to a table of the test's own, roll a view up, and read the ages so far."""
    name = f"users_{uuid.uuid4().hex[:8]}"
    users = replace(CONTRACTS["users"], name=name, topic=name, partitions=1)
    monkeypatch.setitem(CONTRACTS, "users", users)
    ensure_topics(settings, {"users": users})
    producer = Producer(confluent_config(settings) | {"acks": "all", "log_level": 0})
    sent = []

    def roll(view, *of_users):
        for user, age in of_users:
            sent.append(user)
            times = dict.fromkeys(("created_at", "updated_at"), at(len(sent)).isoformat())
            row = {"user_id": user, "name": "Alice", "email": "a@example.com", "age": age, **times}
            change = change_record("users", len(sent), len(sent), None, row)
            producer.produce(name, json.dumps(change.value).encode(), b"k", partition=0)
        assert producer.flush(30) == 0
        ingest(spark, settings, users, "run")
        refine(spark, settings, users, "run")
        roll_up(spark, settings, view, "run")
        return sorted(row["age"] for row in rows_of(spark, settings, gold_of(view)))

    return roll


def test_another_definition_replaces_all_rows_of_a_view_that_is_upserted(ages):
    view = Keyed(
        name=f"ages_{uuid.uuid4().hex[:8]}",
        columns={"user_id": "STRING", "age": "INT"},
        key=("user_id",),
        inputs=(Input("users", "user_id", ("user_id", "age"), time="_committed_at"),),
        allowed_lateness=timedelta(0),
        process=aged,
    )
    assert ages(view, ("1", 30), ("2", 40)) == [30, 40]
    assert ages(view, ("1", 31)) == [31, 40]
    assert ages(replace(view, process=aged_twice), ("1", 32)) == [64, 80]
