"""Alerts about a person who is erased: the topic has them for a week, the receipt says until when, and nothing else has them."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from pyspark import cloudpickle
from tests.support.erased import left
from tests.support.live import run_live
from tests.support.receivers import Web, served

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.control.database import control
from lockstep.definition import Input, Keyed
from lockstep.definition.alerting import Alerting
from lockstep.definition.registry import VIEWS
from lockstep.kafka_clients import admin
from lockstep.reconcile.notify import publish_alert
from lockstep.sinks.alerts import receivers
from lockstep.sinks.direct_sink import Outcome, deliver
from lockstep.sinks.message import Message

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def alerted(state, event):
    """Alert of each event."""
    return state, [{"event_id": event.data["event_id"], "user_id": event.data["user_id"]}]


@pytest.fixture
def alerts(stream, monkeypatch):
    """A view that alerts of each event, and says of whom it was."""
    view = Keyed(
        name=f"alerts_{stream.name[-8:]}",
        columns={"event_id": "STRING", "user_id": "STRING"},
        key=("event_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("event_id", "user_id")),),
        process=alerted,
        alerts=Alerting(id=("event_id",), key="user_id"),
    )
    monkeypatch.setitem(VIEWS, view.name, view)
    return view


@pytest.fixture
def sent(settings, view, alerts, batch):
    """Brings both layers up to the topic; the live one sends its alerts."""

    def both_layers():
        batch()
        with connect(settings, "task") as session:
            roll_up(session, settings, alerts, "run")
        run_live(settings, alerts)

    return both_layers


def test_alerts_about_a_person_stay_in_their_topic_for_a_week_and_nowhere_else(
    spark, settings, stream, alerts, shop, sent, erase, person
):
    for number in range(4):
        shop.view(f"e{number}", number * 7, user_id=(person, f"{person}2")[number % 2])
    shop.heartbeat(300)
    shop.flush()
    sent()
    publish_alert(
        spark, settings, replace(alerts, name=f"{alerts.name}_other"), datetime.now(UTC), f"of {person}", "run"
    )
    with served(Web()) as busy:
        busy.answers = [503] * 1000
        with_webhook = settings.model_copy(update={"webhook_url": f"http://127.0.0.1:{busy.server_address[1]}/"})
        (sink,) = receivers(with_webhook, alerts.name, alerts.alerts)
        waits = Message(f"a{stream.name[-8:]}", person, json.dumps({"user_id": person}))
        assert deliver(with_webhook, sink, [waits]) == Outcome(waiting=1)

    first = erase(person, stream).receipt
    assert left(first, stream) == []
    assert first["places"]["Kafka"]["after"] == 0
    until = first["kafka_keeps_until"]
    assert until
    assert {place.rpartition("-")[0] for place in until} == {"alerts"}
    week, now = timedelta(days=7), datetime.now(UTC)
    for place, at in until.items():
        assert place in first["kafka_still_has"]
        assert week < datetime.fromisoformat(at) - now < week + timedelta(days=1)
    again = erase(person, stream).receipt
    assert (left(again, stream), again["kafka_keeps_until"]) == ([], until), "it ends well, as often as it is asked for"
    assert spark.table("ops.alerts").where(f"text LIKE '%{person}%'").isEmpty()
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM delivery_outbox o WHERE o::text ~ %s", (rf"\y{person}\y",))
        assert cursor.fetchone() == (0,)


@pytest.mark.slow
def test_a_topic_that_keeps_alerts_for_ever_is_named_as_a_trace(settings, stream, alerts, shop, sent, erase, person):
    shop.view("e1", 1, user_id=person)
    shop.heartbeat(300)
    shop.flush()
    sent()

    def keep(retention):
        resource = ConfigResource(
            ConfigResourceType.TOPIC, "alerts", {"retention.ms": retention, "segment.ms": "86400000"}
        )
        client = admin(settings)
        client.alter_configs([resource])
        client.close()

    keep("-1")
    try:
        receipt = erase(person, stream).receipt
        assert receipt["kafka_keeps_until"] == {}
        (found, *_) = left(receipt, stream)
        assert (found.place, found.where.rpartition("-")[0]) == ("Kafka", "alerts")
        assert found.what == "the subject in the clear, and keeps it for ever, because it has no retention.ms"
    finally:
        keep("604800000")
    assert left(erase(person, stream).receipt, stream) == []
