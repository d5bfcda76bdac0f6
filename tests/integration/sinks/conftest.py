"""A query that delivers rows and can be killed, a reader of the topic, and a mailbox."""

import os
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.committed import read_all
from tests.support.receivers import Mailbox, served

from lockstep.failpoints import VARIABLE
from lockstep.settings import Settings

DELIVERER = Path(__file__).with_name("deliverer.py")


@dataclass(frozen=True)
class Query:
    """A query of one name, topic and checkpoint, which can be started again and again."""

    delivery: str
    topic: str
    acknowledged: Path
    batches: int

    def start(self, crash_at: str = "", *options: str) -> subprocess.Popen[bytes]:
        """Start it where it stopped. With ``crash_at`` (``name:nth``), it kills itself at that failpoint."""
        command = [sys.executable, str(DELIVERER), self.topic, self.topic, self.delivery]
        environment = os.environ | ({VARIABLE: crash_at} if crash_at else {})
        return subprocess.Popen(
            [*command, str(self.acknowledged), str(self.batches), *options], env=environment, start_new_session=True
        )

    def run(self, crash_at: str = "", *options: str) -> int:
        """Run it to its end; return its exit code. A negative code is the signal that killed it."""
        return self.start(crash_at, *options).wait(timeout=120)


@pytest.fixture
def query(settings: Settings, tmp_path: Path) -> Callable[..., Query]:
    """Makes a query with the given delivery, on a topic of its own."""
    name = f"alerts-{uuid.uuid4().hex[:8]}"
    return lambda delivery, batches=6: Query(delivery, name, tmp_path / "acknowledged", batches)


@pytest.fixture
def arrived(settings: Settings) -> Iterator[Callable[[str], Counter[str]]]:
    """Counts how often each id is in a topic, for a reader with ``read_committed``."""
    yield lambda topic: Counter(dict(m.headers())["Idempotency-Key"].decode() for m in read_all(settings, topic))


@pytest.fixture
def mailbox(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """A mail server that keeps what it gets; the settings name it."""
    with served(Mailbox()) as running:
        monkeypatch.setenv("LOCKSTEP_MAIL_SERVER", f"127.0.0.1:{running.server_address[1]}")
        monkeypatch.setenv("LOCKSTEP_MAIL_TO", "oncall@example.org")
        yield running
