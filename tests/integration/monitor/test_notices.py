"""Notices reach people by the notifiers of Airflow's providers, and a notifier that fails loses none."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_string
from pathlib import Path

import pytest
from tests.support.receivers import Mailbox, Web, served

from lockstep.monitor.notify import deliver, name_of, queued
from lockstep.settings import Notifier, Settings
from lockstep.status.model import Problem
from lockstep.status.open_problems import Notice, Unsent

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
# As a person may write it into a view: nothing of it is a template.
KAFKA = Problem("service:kafka", "kafka is stopped <{{ 7 * 7 }}>", "start it", NOON)
NOTICE = Notice(NOON, new=(KAFKA,))
HTTP = {"class": "airflow.providers.http.notifications.HttpNotifier", "http_conn_id": "ops", "endpoint": "hooks/1"}
MAIL = {"class": "airflow.providers.smtp.notifications.smtp.SmtpNotifier", "to": "oncall@example.org"}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with served(Web()) as running:
        monkeypatch.setenv("AIRFLOW_CONN_OPS", f"http://127.0.0.1:{running.server_address[1]}")
        yield running


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    with served(Mailbox()) as running:
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": running.server_address[1],
            "extra": {"disable_ssl": True, "disable_tls": True, "from_email": "lockstep@example.org"},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield running


def sent(home: Path, *entries: dict[str, str]) -> dict[str, Unsent]:
    """Send the notice by these notifiers; what could not be sent."""
    settings = Settings(home=home, notifiers=tuple(Notifier(**entry) for entry in entries))
    return deliver(settings, queued(settings, {}, NOTICE))


def test_a_webhook_and_a_mailbox_get_the_notice_as_it_is(tmp_path: Path, web: Web, mailbox: Mailbox) -> None:
    assert sent(tmp_path, HTTP, MAIL) == {}
    ((_, body),) = web.taken
    assert json.loads(body) == {
        "subject": "Lockstep: kafka is stopped <{{ 7 * 7 }}>",
        "text": "NEW kafka is stopped <{{ 7 * 7 }}> (since 2026-11-20 12:00:00 UTC): start it",
    }
    (letter,) = mailbox.letters
    mail = message_from_string(letter)
    assert (mail["To"], mail["Subject"]) == ("oncall@example.org", "Lockstep: kafka is stopped <{{ 7 * 7 }}>")
    (html,) = [part for part in mail.walk() if part.get_content_type() == "text/html"]
    assert "kafka is stopped &lt;{{ 7 * 7 }}&gt;" in html.get_payload(decode=True).decode()


def test_a_notifier_that_fails_keeps_its_notices_and_stops_no_other(tmp_path: Path, web: Web) -> None:
    wrong = {"class": "airflow.providers.nobody.Notifier"}
    web.answers = [500]
    left = sent(tmp_path, wrong, HTTP)
    first, second = (name_of(Notifier(**entry), index) for index, entry in enumerate((wrong, HTTP)))
    assert {name: unsent.notices for name, unsent in left.items()} == {first: (NOTICE,), second: (NOTICE,)}
    assert "is its provider installed?" in left[first].error
    assert "500" in left[second].error
    settings = Settings(home=tmp_path, notifiers=(Notifier(**wrong), Notifier(**HTTP)))
    again = deliver(settings, queued(settings, left, Notice(NOON, over=(KAFKA,))))
    assert again.keys() == {first}
    assert ["NEW" in body.decode() for _, body in web.taken] == [True, False], "the oldest is sent first, and each once"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"class": "builtins.dict"}, "is not one of Airflow's notifiers"),
        ({}, "class '' cannot be imported"),
        (HTTP | {"colour": "red"}, "unexpected keyword argument 'colour'"),
    ],
)
def test_a_notifier_that_is_configured_wrongly_says_what_to_correct(
    tmp_path: Path, entry: dict[str, str], reason: str
) -> None:
    ((_, unsent),) = sent(tmp_path, entry).items()
    assert reason in unsent.error
