"""A web server and a mail server on the loopback. They remember what they took, and can be busy or refuse."""

import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def served(server: socketserver.BaseServer) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Web(ThreadingHTTPServer):
    """Takes posts; ``taken`` has the headers and the body of each. It gives ``answers`` first, one per request, then 204.

    It needs ``seconds`` for each answer.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.asked = 0
        self.seconds = 0.0

    def take(self, headers: dict[str, str], body: bytes) -> None:
        self.taken.append((headers, body))

    @property
    def ids(self) -> list[str]:
        return [headers["Idempotency-Key"] for headers, _ in self.taken]


class _Post(BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked += 1
        time.sleep(self.server.seconds)
        answer = self.server.answers.pop(0) if self.server.answers else 204
        if answer < 300:
            self.server.take(dict(self.headers), body)
        self.send_response(answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Mailbox(socketserver.ThreadingTCPServer):
    """As much of SMTP as a client needs. ``letters`` has the text of each e-mail. ``refusals`` are the first answers to DATA."""

    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Smtp)
        self.letters: list[str] = []
        self.refusals: list[str] = []


class _Smtp(socketserver.StreamRequestHandler):
    server: Mailbox

    def handle(self) -> None:
        self._answer("220 mailbox")
        while line := self.rfile.readline():
            verb = line.split()[0].upper().decode()
            if verb == "DATA":
                self._data()
            else:
                self._answer({"QUIT": "221 bye"}.get(verb, "250 ok"))
            if verb == "QUIT":
                return

    def _data(self) -> None:
        if self.server.refusals:
            self._answer(self.server.refusals.pop(0))
            return
        self._answer("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.decode())
        self.server.letters.append("".join(lines))
        self._answer("250 taken")

    def _answer(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())
