"""Views with machines, replayed with a changed definition: events for an interval, and tables as a whole."""

import json
import sys
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest
from confluent_kafka import Producer
from pyspark import cloudpickle
from tests.support.digest import digest
from tests.support.records import change_record

from lockstep.contracts import CONTRACTS
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.replay import run

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def numbered(state, event):
    """Number the events of a user."""
    number = (state or 0) + 1
    return number, [{"event_id": event.data["event_id"], "number": number}]


def numbered_in_tens(state, event):
    """Number them 10, 20, 30 …"""
    number = (state or 0) + 10
    return number, [{"event_id": event.data["event_id"], "number": number}]


def aged(state, event):
    """The age of a user."""
    return {"known": True}, [{"user_id": event.data["user_id"], "age": event.data["age"]}]


def aged_in_months(state, event):
    """The age in months."""
    return {"known": True}, [{"user_id": event.data["user_id"], "age": 12 * event.data["age"]}]


@pytest.fixture
def registered(monkeypatch):
    """Adds a view to the project for the test."""

    def register(view):
        monkeypatch.setitem(VIEWS, view.name, view)
        return view

    return register


class TestOfEvents:
    """Each row depends on all events before it."""

    @pytest.fixture
    def view(self, stream, registered):
        return registered(
            Keyed(
                name=f"numbered_{stream.name[-8:]}",
                columns={"event_id": "STRING", "number": "BIGINT"},
                key=("event_id",),
                allowed_lateness=timedelta(seconds=2),
                inputs=(Input(stream.name, "user_id", ("event_id",)),),
                process=numbered,
            )
        )

    def test_the_rows_of_the_interval_alone_are_promoted_and_undone(
        self, spark, settings, shop, view, rows, batch, asked, redone, registered
    ):
        gold = gold_of(view)

        def numbers():
            return {row["event_id"]: row["number"] for row in rows(gold)}

        for minute in range(4):
            shop.view(f"e{minute}", 60 * minute)
        shop.heartbeat(3600)
        shop.flush()
        batch()
        before = digest(settings, gold)
        assert numbers() == {"e0": 1, "e1": 2, "e2": 3, "e3": 4}

        registered(replace(view, process=numbered_in_tens))
        replay = redone(asked((1, 3)), until="compared")
        assert digest(settings, gold) == before, "until it is promoted, nothing has changed"
        assert replay.compared.tables[gold].keys.changed == 2
        run.approve(spark, settings, replay.id, "run", "tester")
        run.promote(spark, settings, replay.id, "run")
        assert numbers() == {"e0": 1, "e1": 20, "e2": 30, "e3": 4}

        run.undo(spark, settings, replay.id, "run", "tester")
        assert digest(settings, gold) == before
        registered(view)
        shop.view("e4", 3700)
        shop.heartbeat(3800)
        shop.flush()
        batch()
        assert numbers() == {"e0": 1, "e1": 2, "e2": 3, "e3": 4, "e4": 5}, "machines go on as if nothing had been"


class TestOfTables:
    """The rows are upserted, so a replay takes them all."""

    @pytest.fixture
    def stream(self, settings, monkeypatch):
        name = f"users_{uuid.uuid4().hex[:8]}"
        users = replace(CONTRACTS["users"], name=name, topic=name, partitions=1)
        monkeypatch.setitem(CONTRACTS, name, users)
        ensure_topics(settings, {name: users})
        return users

    @pytest.fixture
    def view(self, stream, registered):
        return registered(
            Keyed(
                name=f"ages_{stream.name[-8:]}",
                columns={"user_id": "STRING", "age": "BIGINT"},
                key=("user_id",),
                allowed_lateness=timedelta(0),
                inputs=(Input(stream.name, "user_id", ("user_id", "age"), time="_committed_at"),),
                process=aged,
            )
        )

    @pytest.fixture
    def ages(self, settings, stream, view, rows, batch):
        """Send changes of ages, roll the view up, and read the age of each user."""
        producer, lsn = Producer(confluent_config(settings) | {"acks": "all", "log_level": 0}), 0

        def change(**ages):
            nonlocal lsn
            for user, age in ages.items():
                lsn += 1
                after = {"user_id": user, "age": age, "updated_at": "2026-11-10T10:00:00Z"}
                record = change_record(stream.name, lsn, lsn, None, after)
                producer.produce(stream.topic, json.dumps(record.value).encode(), user.encode())
            assert producer.flush(30) == 0
            batch()
            return {row["user_id"]: row["age"] for row in rows(gold_of(view))}

        return change

    def test_all_rows_are_promoted_and_undone(self, spark, settings, view, ages, rows, asked, redone, registered):
        assert ages(u1=30, u2=40) == {"u1": 30, "u2": 40}
        before = digest(settings, gold_of(view))
        registered(replace(view, process=aged_in_months))
        replay = redone(asked())
        assert {row["user_id"]: row["age"] for row in rows(gold_of(view))} == {"u1": 360, "u2": 480}
        run.undo(spark, settings, replay.id, "run", "tester")
        assert digest(settings, gold_of(view)) == before
        registered(view)
        assert ages(u1=31) == {"u1": 31, "u2": 40}
