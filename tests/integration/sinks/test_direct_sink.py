"""Webhooks and e-mail: one message per alert, an idempotency key, and a choice of what happens if the receiver is busy."""

import email
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest
from tests.support.receivers import Web, served

from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition.alerting import Overload
from lockstep.errors import LeaseHeld
from lockstep.failpoints import VARIABLE
from lockstep.sinks import outbox
from lockstep.sinks.direct_sink import DirectSink, DirectSinkConfig, Outcome, send_waiting
from lockstep.sinks.errors import Overloaded
from lockstep.sinks.mail import Mail
from lockstep.sinks.webhook import Webhook

ALERTS = [{"alert_id": f"a{n}", "alert": "fraud", "user_id": f"u{n}"} for n in range(4)]
IDS = [alert["alert_id"] for alert in ALERTS]


@pytest.fixture
def web(settings, monkeypatch):
    with served(Web()) as running:
        monkeypatch.setenv("LOCKSTEP_WEBHOOK_URL", f"http://127.0.0.1:{running.server_address[1]}/alerts")
        monkeypatch.setenv("LOCKSTEP_WEBHOOK_TOKEN", "sesame")
        yield running


def sink(overload=Overload.BACKPRESSURE, transport=Webhook, **options):
    return DirectSinkConfig(f"hook-{uuid.uuid4().hex[:8]}", transport, overload, **({"timeout": 0.5} | options))


def states(settings, name):
    with control(settings) as connection:
        return {state: number for state, number in outbox.counts(connection).get(name, {}).items() if number}


def settings_of(web, settings):
    return settings.model_copy(update={"webhook_url": f"http://127.0.0.1:{web.server_address[1]}/alerts"})


def test_an_alert_is_one_post_with_its_key_its_token_and_its_json(web):
    assert DirectSink(sink())(ALERTS, 0) == Outcome(sent=4)
    headers, body = web.taken[0]
    assert (headers["Idempotency-Key"], headers["Authorization"]) == ("a0", "Bearer sesame")
    assert json.loads(body) == ALERTS[0]
    assert web.ids == IDS


def test_a_batch_that_runs_again_is_not_posted_again(web):
    own = sink()
    DirectSink(own)(ALERTS[:3], 0)
    assert DirectSink(own)(ALERTS, 0) == Outcome(sent=1, repeated=3)
    assert web.ids == IDS


def test_a_busy_receiver_is_tried_again_and_a_refusal_is_final(web, settings):
    own = sink(timeout=10)
    web.answers = [503, 429, 204, 400]
    assert DirectSink(own)(ALERTS, 0) == Outcome(sent=3, refused=1)
    assert web.ids == ["a0", "a2", "a3"]
    assert states(settings, own.name) == {"sent": 3, "refused": 1}


def test_backpressure_fails_the_batch_until_the_receiver_answers_and_loses_nothing(web):
    own = sink(Overload.BACKPRESSURE)
    web.answers = [204] + [503] * 50
    with pytest.raises(Overloaded, match=r"has taken none of 3 alerts for 0\.5 s, such as a1"):
        DirectSink(own)(ALERTS, 0)
    web.answers = []
    assert DirectSink(own)(ALERTS, 0) == Outcome(sent=3, repeated=4)
    assert web.ids == IDS


def test_drop_goes_on_and_logs_the_alerts_that_it_dropped(web, settings, caplog):
    own = sink(Overload.DROP)
    web.answers = [204] + [503] * 50
    assert DirectSink(own)(ALERTS, 0) == Outcome(sent=1, dropped=3)
    assert "3 alerts were dropped" in caplog.text
    assert "a1, a2, a3" in caplog.text
    web.answers = []
    assert DirectSink(own)([{"alert_id": "later"}], 1) == Outcome(sent=1)
    assert web.ids == ["a0", "later"]
    assert states(settings, own.name) == {"sent": 2, "dropped": 3}


def test_buffer_goes_on_and_later_sends_the_alerts_that_wait_in_order(web, settings):
    own = sink(Overload.BUFFER)
    web.answers = [503] * 50
    assert DirectSink(own)(ALERTS[:2], 0) == Outcome(waiting=2)
    assert states(settings, own.name) == {"waiting": 2}
    web.answers = []
    assert DirectSink(own)(ALERTS[2:], 1) == Outcome(sent=4)
    assert web.ids == IDS


def test_a_full_buffer_exerts_backpressure_and_drops_nothing(web, settings):
    own = sink(Overload.BUFFER, limit=3)
    web.answers = [503] * 100
    DirectSink(own)(ALERTS[:2], 0)
    with pytest.raises(Overloaded, match="2 alerts wait and 2 more came, but its buffer holds 3"):
        DirectSink(own)(ALERTS[2:], 1)
    assert states(settings, own.name) == {"waiting": 2}
    web.answers = []
    DirectSink(own)(ALERTS[2:], 1)
    assert web.ids == IDS


def test_a_receiver_that_does_not_answer_counts_as_busy(web, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_WEBHOOK_URL", "http://127.0.0.1:9/")
    assert DirectSink(sink(Overload.BUFFER))(ALERTS, 0) == Outcome(waiting=4)


KILLED = """
import sys
from lockstep.sinks.direct_sink import DirectSink, DirectSinkConfig
from lockstep.sinks.{module} import {transport}
own = DirectSinkConfig("{name}", {transport}, "{overload}", {timeout}, {limit})
DirectSink(own)([{{"alert_id": "{prefix}%d" % n}} for n in range({number})], 0)
"""


def kill(failpoint, transport, own, number, prefix="n"):
    """Send so many alerts in a process that kills itself at the failpoint."""
    choice = {"overload": own.overload, "timeout": own.timeout, "limit": own.limit}
    program = KILLED.format(
        module=transport.__module__.rpartition(".")[2],
        transport=transport.__name__,
        name=own.name,
        number=number,
        prefix=prefix,
        **choice,
    )
    crash = os.environ | {VARIABLE: failpoint}
    process = subprocess.run([sys.executable, "-c", program], env=crash, start_new_session=True, check=False)
    assert process.returncode == -signal.SIGKILL


MANY = [f"n{n}" for n in range(1_050)]


def test_a_batch_of_more_alerts_than_the_buffer_holds_is_delivered_and_what_waits_is_bounded(web, settings):
    own = sink(Overload.BUFFER, limit=100)
    waiting = []

    def rows():
        for id in MANY:
            yield {"alert_id": id}
            waiting.append(states(settings, own.name).get("waiting", 0) if id.endswith("00") else 0)

    outcome = DirectSink(own)(rows(), 0)
    assert outcome.sent + outcome.waiting == len(MANY)
    assert outcome.waiting <= 100
    assert max(waiting) <= 100
    while send_waiting(settings_of(web, settings), own).waiting:
        pass
    assert web.ids == MANY


def test_a_batch_that_is_killed_in_the_middle_goes_on_where_it_was_stopped(web, settings):
    own = sink(Overload.BUFFER, limit=100, timeout=60)
    kill("deliver-direct-sent:500", Webhook, own, len(MANY))
    assert DirectSink(own)([{"alert_id": id} for id in MANY], 0) == Outcome(sent=551, repeated=500)
    repeated = [MANY[499]]
    assert sorted(web.ids) == sorted(MANY + repeated), "only the one that was sent and not recorded"


def test_backpressure_waits_as_long_as_a_slow_receiver_takes_alerts(web, settings):
    own = sink(Overload.BACKPRESSURE, timeout=0.5)
    web.seconds = 0.05
    assert DirectSink(own)([{"alert_id": id} for id in MANY[:30]], 0) == Outcome(sent=30)
    assert web.ids == MANY[:30]


def test_a_batch_of_any_size_is_dropped_when_its_time_is_over(web, settings, caplog):
    own = sink(Overload.DROP, limit=100, timeout=0.5)
    web.seconds = 0.05
    outcome = DirectSink(own)([{"alert_id": id} for id in MANY], 0)
    assert (outcome.sent + outcome.dropped, outcome.waiting) == (len(MANY), 0)
    assert 1 <= outcome.sent <= 20
    assert states(settings, own.name) == {"sent": outcome.sent, "dropped": outcome.dropped}


def test_who_sends_what_waits_does_not_wait_for_a_batch_that_sends(web, settings):
    own = sink(Overload.BUFFER)
    with lease(settings, f"deliver.{own.name}", "a micro-batch"):
        started = time.monotonic()
        with pytest.raises(LeaseHeld):
            send_waiting(settings_of(web, settings), own)
    assert time.monotonic() - started < 30


def test_an_alert_repeated_by_a_killed_sender_has_the_same_key(web):
    own = sink()
    kill("deliver-direct-sent:2", Webhook, own, 2, prefix="a")
    assert DirectSink(own)([{"alert_id": "a0"}, {"alert_id": "a1"}], 0) == Outcome(sent=1, repeated=2)
    assert web.ids == ["a0", "a1", "a1"]


def test_an_email_is_one_message_with_its_key_and_is_not_sent_twice(mailbox):
    own = sink(transport=Mail)
    assert DirectSink(own)(ALERTS[:1], 0) == Outcome(sent=1)
    assert DirectSink(own)(ALERTS[:1], 0) == Outcome(repeated=1)
    (letter,) = [email.message_from_string(text) for text in mailbox.letters]
    assert (letter["Message-ID"], letter["To"]) == ("<a0@localhost>", "oncall@example.org")
    assert letter["Subject"] == "Lockstep alert: fraud"
    assert "user_id: u0" in letter.get_payload()


def test_an_email_repeated_by_a_killed_sender_is_the_same_message(mailbox):
    own = sink(transport=Mail)
    kill("deliver-direct-sent:2", Mail, own, 2, prefix="a")
    DirectSink(own)([{"alert_id": "a1"}], 0)
    message_ids = [email.message_from_string(text)["Message-ID"] for text in mailbox.letters]
    assert message_ids == ["<a0@localhost>", "<a1@localhost>", "<a1@localhost>"]


def test_a_mail_server_answers_later_or_never(mailbox, settings):
    own = sink(transport=Mail, timeout=10)
    mailbox.refusals = ["451 later", "554 never"]
    assert DirectSink(own)(ALERTS[:2], 0) == Outcome(sent=1, refused=1)
    assert states(settings, own.name) == {"sent": 1, "refused": 1}


def test_an_alert_cannot_add_headers_to_its_email(mailbox):
    DirectSink(sink(transport=Mail))([{"alert_id": "a0", "alert": "x\r\nBcc: all@example.org"}], 0)
    (letter,) = [email.message_from_string(text) for text in mailbox.letters]
    assert letter["Bcc"] is None
    assert letter["Subject"] == "Lockstep alert: x Bcc: all@example.org"
