"""Webhooks and e-mail: one message per alert, a key by which a repetition is known, and a choice when the receiver is busy."""

import email
import json
import os
import signal
import subprocess
import sys
import uuid

import pytest
from tests.integration.sinks.receivers import Mailbox, Web, served

from lockstep.control.database import control
from lockstep.definition.alerting import Overload
from lockstep.failpoints import VARIABLE
from lockstep.sinks import outbox
from lockstep.sinks.direct import DirectSink, Outcome, ToReceiver
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


@pytest.fixture
def mailbox(settings, monkeypatch):
    with served(Mailbox()) as running:
        monkeypatch.setenv("LOCKSTEP_MAIL_SERVER", f"127.0.0.1:{running.server_address[1]}")
        monkeypatch.setenv("LOCKSTEP_MAIL_TO", "oncall@example.org")
        yield running


def sink(overload=Overload.BACKPRESSURE, outlet=Webhook, **options):
    return DirectSink(f"hook-{uuid.uuid4().hex[:8]}", outlet, overload, **({"patience": 0.5} | options))


def states(settings, name):
    with control(settings) as connection:
        return {state: number for state, number in outbox.counts(connection).get(name, {}).items() if number}


def test_an_alert_is_one_post_with_its_key_its_token_and_its_json(web):
    assert ToReceiver(sink())(ALERTS, 0) == Outcome(sent=4)
    headers, body = web.taken[0]
    assert (headers["Idempotency-Key"], headers["Authorization"]) == ("a0", "Bearer sesame")
    assert json.loads(body) == ALERTS[0]
    assert web.ids == IDS


def test_a_batch_that_runs_again_is_not_posted_again(web):
    own = sink()
    ToReceiver(own)(ALERTS[:3], 0)
    assert ToReceiver(own)(ALERTS, 0) == Outcome(sent=1, repeated=3)
    assert web.ids == IDS


def test_a_receiver_that_asks_for_patience_is_tried_again_and_one_that_refuses_is_not(web, settings):
    own = sink(patience=10)
    web.answers = [503, 429, 204, 400]
    assert ToReceiver(own)(ALERTS, 0) == Outcome(sent=3, refused=1)
    assert web.ids == ["a0", "a2", "a3"]
    assert states(settings, own.name) == {"sent": 3, "refused": 1}


def test_push_back_fails_the_batch_until_the_receiver_is_well_and_loses_nothing(web):
    own = sink(Overload.BACKPRESSURE)
    web.answers = [204] + [503] * 50
    with pytest.raises(Overloaded, match=r"has not taken 3 alerts within 0\.5 s, such as a1"):
        ToReceiver(own)(ALERTS, 0)
    web.answers = []
    assert ToReceiver(own)(ALERTS, 0) == Outcome(sent=3, repeated=4)
    assert web.ids == IDS


def test_drop_goes_on_and_tells_what_it_dropped(web, settings, caplog):
    own = sink(Overload.DROP)
    web.answers = [204] + [503] * 50
    assert ToReceiver(own)(ALERTS, 0) == Outcome(sent=1, dropped=3)
    assert "3 alerts were dropped" in caplog.text
    assert "a1, a2, a3" in caplog.text
    web.answers = []
    assert ToReceiver(own)([{"alert_id": "later"}], 1) == Outcome(sent=1)
    assert web.ids == ["a0", "later"]
    assert states(settings, own.name) == {"sent": 2, "dropped": 3}


def test_buffer_goes_on_and_sends_what_waits_in_order_when_the_receiver_is_well(web, settings):
    own = sink(Overload.BUFFER)
    web.answers = [503] * 50
    assert ToReceiver(own)(ALERTS[:2], 0) == Outcome(waiting=2)
    assert states(settings, own.name) == {"waiting": 2}
    web.answers = []
    assert ToReceiver(own)(ALERTS[2:], 1) == Outcome(sent=4)
    assert web.ids == IDS


def test_a_full_buffer_pushes_back_rather_than_drops(web, settings):
    own = sink(Overload.BUFFER, limit=3)
    web.answers = [503] * 100
    ToReceiver(own)(ALERTS[:2], 0)
    with pytest.raises(Overloaded, match="2 alerts wait and 2 more came, but its buffer holds 3"):
        ToReceiver(own)(ALERTS[2:], 1)
    assert states(settings, own.name) == {"waiting": 2}
    web.answers = []
    ToReceiver(own)(ALERTS[2:], 1)
    assert web.ids == IDS


def test_a_receiver_that_is_away_is_busy_and_not_an_error_of_ours(web, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_WEBHOOK_URL", "http://127.0.0.1:9/")
    assert ToReceiver(sink(Overload.BUFFER))(ALERTS, 0) == Outcome(waiting=4)


KILLED = """
import sys
from lockstep.sinks.direct import DirectSink, ToReceiver
from lockstep.sinks.{module} import {outlet}
ToReceiver(DirectSink(sys.argv[1], {outlet}))([{{"alert_id": "a0"}}, {{"alert_id": "a1"}}], 0)
"""


def killed_after_sending(outlet, name):
    program = KILLED.format(module=outlet.__module__.rpartition(".")[2], outlet=outlet.__name__)
    crash = os.environ | {VARIABLE: "deliver-direct-sent:2"}
    done = subprocess.run([sys.executable, "-c", program, name], env=crash, start_new_session=True, check=False)
    assert done.returncode == -signal.SIGKILL


def test_what_a_killed_sender_repeats_has_the_key_of_the_first(web):
    own = sink()
    killed_after_sending(Webhook, own.name)
    assert ToReceiver(own)([{"alert_id": "a0"}, {"alert_id": "a1"}], 0) == Outcome(sent=1, repeated=2)
    assert web.ids == ["a0", "a1", "a1"]


def test_an_email_is_one_message_with_its_key_and_is_not_sent_twice(mailbox):
    own = sink(outlet=Mail)
    assert ToReceiver(own)(ALERTS[:1], 0) == Outcome(sent=1)
    assert ToReceiver(own)(ALERTS[:1], 0) == Outcome(repeated=1)
    (letter,) = [email.message_from_string(text) for text in mailbox.letters]
    assert (letter["Message-ID"], letter["To"]) == ("<a0@localhost>", "oncall@example.org")
    assert letter["Subject"] == "Lockstep alert: fraud"
    assert "user_id: u0" in letter.get_payload()


def test_an_email_repeated_by_a_killed_sender_is_the_same_message(mailbox):
    own = sink(outlet=Mail)
    killed_after_sending(Mail, own.name)
    ToReceiver(own)([{"alert_id": "a1"}], 0)
    found = [email.message_from_string(text)["Message-ID"] for text in mailbox.letters]
    assert found == ["<a0@localhost>", "<a1@localhost>", "<a1@localhost>"]


def test_a_mail_server_says_later_or_never(mailbox, settings):
    own = sink(outlet=Mail, patience=10)
    mailbox.refusals = ["451 later", "554 never"]
    assert ToReceiver(own)(ALERTS[:2], 0) == Outcome(sent=1, refused=1)
    assert states(settings, own.name) == {"sent": 1, "refused": 1}


def test_an_alert_cannot_write_headers_of_its_own(mailbox):
    ToReceiver(sink(outlet=Mail))([{"alert_id": "a0", "alert": "x\r\nBcc: all@example.org"}], 0)
    (letter,) = [email.message_from_string(text) for text in mailbox.letters]
    assert letter["Bcc"] is None
    assert letter["Subject"] == "Lockstep alert: x Bcc: all@example.org"
