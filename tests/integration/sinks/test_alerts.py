"""Alerts of a live query on the Spark server: each arrives in the topic once, although a micro-batch runs again."""

import json
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from tenacity import retry, retry_if_exception_type, stop_after_attempt
from tests.integration.sinks.conftest import read_all
from tests.support.live import run_live
from tests.support.receivers import Web, served
from tests.support.shop import START, Shop

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.kafka_clients import ensure_topics
from lockstep.live import generations
from lockstep.sinks.alerts import receivers, send_waiting
from lockstep.sinks.direct_sink import Outcome, deliver
from lockstep.sinks.message import Message


@pytest.fixture
def logins(settings, monkeypatch):
    """The stream of logins on a topic of its own, with three failures of u1 and two of u2."""
    own = replace(CONTRACTS["logins"], topic=f"logins-{uuid.uuid4().hex[:8]}")
    monkeypatch.setitem(CONTRACTS, "logins", own)
    ensure_topics(settings, {"logins": own})
    shop = Shop(settings, own)
    for user, second in [("u1", 0), ("u2", 20), ("u1", 60), ("u2", 400), ("u1", 120)]:
        event = {
            "event_id": f"{user}-{second}",
            "event_time": (START + timedelta(seconds=second)).isoformat(),
            "user_id": user,
            "session_id": "s",
            "success": False,
            "country": "FR",
        }
        shop.raw(json.dumps(event).encode(), second + 0.5, user)
    shop.heartbeat(3600)
    shop.flush()
    return own


@pytest.fixture
def view(logins, monkeypatch):
    """The view failed_logins under a name of its own, whose alerts go out exactly once."""
    own = replace(VIEWS["failed_logins"], name=f"failed_logins_{logins.topic[-8:]}")
    monkeypatch.setitem(VIEWS, own.name, own)
    return own


# The live service restarts a failed query too. Spark 4.1.1 fails once when it reruns a batch that has no new data
# (KafkaMicroBatchStream.metrics).
@retry(retry=retry_if_exception_type(StreamingQueryException), stop=stop_after_attempt(2), reraise=True)
def run(settings, view):
    run_live(settings, view)


def remove_the_commit_of_the_alert(settings, view):
    """Leave the checkpoint as a kill does between the sink's write and Spark's commit file; return the path of that file."""
    raised = next(c.record["batch_id"] for c in lake.commits(settings, f"live.{view.name}") if "batch_id" in c.record)
    checkpoint = Path(generations.get(settings, view.name).location(settings))
    for directory, first in (("commits", raised), ("offsets", raised + 1)):
        for file in (checkpoint / directory).iterdir():
            if int(file.name.strip(".").split(".")[0]) >= first:
                file.unlink()
    return checkpoint / "commits" / str(raised)


def test_an_alert_arrives_exactly_once_although_spark_runs_its_batch_again(settings, view, rows):
    run(settings, view)
    commit = remove_the_commit_of_the_alert(settings, view)
    run(settings, view)
    assert commit.exists(), "the batch has run again"
    (alert,) = [json.loads(m.value()) for m in read_all(settings, "alerts") if view.name.encode() in m.value()]
    assert (alert["alert"], alert["event_id"], alert["user_id"]) == (view.name, "u1-120", "u1")
    assert alert["first_failed_at"] == "2026-11-10T10:00:00.000Z"
    (row,) = rows(f"live.{view.name}")
    assert row["event_id"] == alert["event_id"]


def test_the_live_service_sends_the_alerts_that_waited_for_a_busy_webhook(settings, view):
    with served(Web()) as web:
        with_webhook = settings.model_copy(update={"webhook_url": f"http://127.0.0.1:{web.server_address[1]}/"})
        (sink,) = receivers(with_webhook, view.name, view.alerts)
        web.answers = [503] * 1000
        assert deliver(with_webhook, sink, [Message("a1", "u1", "{}")]) == Outcome(waiting=1)
        web.answers = []
        assert [send_waiting(with_webhook), send_waiting(with_webhook)] == [1, 0]
        assert web.ids == ["a1"]
