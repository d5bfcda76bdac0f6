"""The demonstration of direct messages: a receiver that takes only a few, and the three choices of the sender."""

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from lockstep.control.database import control
from lockstep.definition.alerting import Overload
from lockstep.sinks.direct_sink import DirectSinkConfig, Outcome, deliver
from lockstep.sinks.errors import Overloaded
from lockstep.sinks.message import IDEMPOTENCY_KEY, messages
from lockstep.sinks.outbox import forget
from lockstep.sinks.webhook import Webhook

if TYPE_CHECKING:
    from lockstep.settings import Settings

ALERTS = 20
# So few that most alerts are left when the receiver becomes busy.
TAKES = 5


class Receiver(ThreadingHTTPServer):
    """Takes as many posts as it has room for, and then answers 503."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Posts)
        self.room = TAKES
        self.taken: list[str] = []


class _Posts(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.room > 0:
            self.server.room -= 1
            self.server.taken.append(self.headers[IDEMPOTENCY_KEY])
            self.send_response(204)
        else:
            self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing: the demonstration reports what was taken."""


def demonstrate(settings: "Settings", print_line: Callable[[str], None]) -> dict[Overload, Outcome | None]:
    """Send alerts to a receiver that is soon busy, with each choice; return what happened to them (None: backpressure)."""
    outcomes: dict[Overload, Outcome | None] = {}
    for overload in Overload:
        with receiving() as receiver:
            own = settings.model_copy(update={"webhook_url": f"http://127.0.0.1:{receiver.server_address[1]}/"})
            sink = DirectSinkConfig(f"demonstration-{uuid.uuid4().hex[:8]}", Webhook, overload, timeout=1.0)
            rows = list(messages(({"alert_id": f"{sink.name}-{n}"} for n in range(ALERTS)), sink.name))
            try:
                outcomes[overload] = deliver(own, sink, rows)
                what_happened = str(outcomes[overload])
            except Overloaded as error:
                outcomes[overload] = None
                what_happened = f"the batch fails, and its query waits: {error}"
            print_line(f"{overload}: of {ALERTS} alerts the receiver took {len(receiver.taken)}; {what_happened}")
            receiver.room = ALERTS
            later = deliver(own, sink, rows)
            with control(own) as connection:
                forget(connection, sink.name)
            print_line(
                f"  The receiver has room again, and the batch runs again: {later.sent} more, {len(set(receiver.taken))} in all."
            )
    return outcomes


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on the loopback that exists only inside the block."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
