"""A batch of 100,000 alerts reaches a slow webhook in pieces, although its sender is killed in between."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from tests.support.ports import started
from tests.support.receivers import Web, served

from lockstep.control.database import control
from lockstep.sinks import outbox
from lockstep.sinks.direct_sink import DirectSinkConfig, send_waiting
from lockstep.sinks.webhook import Webhook

ALERTS = int(os.environ.get("LOCKSTEP_SOAK_ALERTS", "100000"))
LIMIT = 10_000
# At most 200 alerts a second.
SECONDS = 0.005
KILLS = 3
# Most of it is Python and its packages: 58 were measured. A list of all alerts would need more than as much again.
MEGABYTES = 100
NAME = "soak.webhook"
SENDER = f"""
from lockstep.definition.alerting import Overload
from lockstep.sinks.direct_sink import DirectSink, DirectSinkConfig
from lockstep.sinks.webhook import Webhook
rows = ({{"alert_id": f"n{{n}}", "alert": "soak", "text": "x" * 200}} for n in range({ALERTS}))
print(DirectSink(DirectSinkConfig("{NAME}", Webhook, Overload.BUFFER, 2, {LIMIT}))(rows, 0))
"""


class Counting(Web):
    """Remembers the ids of the posts, and nothing else of them."""

    def __init__(self):
        super().__init__()
        self.seconds = SECONDS
        self.seen = []

    def take(self, headers, _body):
        self.seen.append(headers["Idempotency-Key"])


@pytest.fixture
def settings(tmp_path):
    with started(tmp_path / "home", services=["postgres"]) as stack:
        yield stack.settings


@pytest.mark.timeout(3600)
def test_a_slow_webhook_gets_every_alert_of_a_large_batch(settings, report, monkeypatch):
    with served(Counting()) as web:
        url = f"http://127.0.0.1:{web.server_address[1]}/"
        monkeypatch.setenv("LOCKSTEP_WEBHOOK_URL", url)
        began, megabytes, waiting = time.monotonic(), [], []
        for part in range(1, KILLS + 2):
            sender = subprocess.Popen([sys.executable, "-c", SENDER], start_new_session=True)
            until = ALERTS * part // (KILLS + 1) - LIMIT // 2 if part <= KILLS else ALERTS
            while sender.poll() is None and len(web.seen) < until:
                time.sleep(1)
                megabytes.append(_megabytes(sender.pid))
                waiting.append(_waiting(settings))
            if part <= KILLS:
                sender.send_signal(signal.SIGKILL)
            assert sender.wait() == (-signal.SIGKILL if part <= KILLS else 0)
        buffered = _waiting(settings)
        own = DirectSinkConfig(NAME, Webhook, timeout=60)
        while send_waiting(settings.model_copy(update={"webhook_url": url}), own).waiting:
            pass
        seconds = time.monotonic() - began
    repeated = len(web.seen) - len(set(web.seen))
    report(
        f"| | | a sender of {ALERTS:,} alerts, {KILLS} times | {seconds:.0f} in all | {len(web.seen)}, {repeated} twice "
        f"| at most {max(waiting)} waited, {buffered} at the end; sender {max(megabytes)} MB |"
    )
    assert set(web.seen) == {f"n{n}" for n in range(ALERTS)}
    assert repeated <= KILLS, "only what was sent and not recorded when it was killed"
    assert max(waiting) <= LIMIT
    assert max(megabytes) <= MEGABYTES, "memory does not grow with the batch"


def _megabytes(pid):
    try:
        return psutil.Process(pid).memory_info().rss >> 20
    except psutil.NoSuchProcess:
        return 0


def _waiting(settings):
    with control(settings) as connection:
        return outbox.number_waiting(connection, NAME)
