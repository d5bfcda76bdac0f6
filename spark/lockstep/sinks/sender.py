"""Sends the messages that wait in the outbox of one sink, and records what becomes of each."""

import logging
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from lockstep.failpoints import failpoint
from lockstep.sinks import outbox
from lockstep.sinks.errors import Overloaded
from lockstep.sinks.message import Message
from lockstep.sinks.outbox import State
from lockstep.sinks.transport import Busy, MessageRefused, Transport

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

log = logging.getLogger("lockstep.sinks")

# How many alerts are read and written at a time: few statements for many alerts, and less than a megabyte of them.
PIECE = 1_000
# As many ids of dropped alerts as a line of a log can show. The outbox has all of them.
_SHOWN = 10


class Sender:
    """Sends messages, oldest first. The caller sees to it that a sink has one sender at a time.

    Args:
        name: of the sink.
        timeout: how long the receiver may take none, in seconds, before a sender that waits for it gives up.

    Attributes:
        sent, refused: how many messages the receiver has taken, and refused for good.
    """

    def __init__(self, name: str, timeout: float, transport: Transport, connection: "Connection") -> None:
        self.name, self.timeout, self.connection = name, timeout, connection
        self.sent = self.refused = 0
        self._transport = transport

    def waiting(self) -> int:
        """How many messages wait."""
        return outbox.number_waiting(self.connection, self.name)

    def make_room(self, number: int, limit: int) -> None:
        """Send messages until a buffer of ``limit`` messages has room for some more.

        Raises:
            Overloaded: the receiver takes nothing, and the buffer is full.
        """
        waiting = self.waiting()
        try:
            self._send_oldest(max(waiting + number - limit, 0))
        except Busy as error:
            raise Overloaded(
                f"{self.name}: {self.waiting()} alerts wait and {number} more came, but its buffer holds "
                f"{limit}, and the receiver has taken none for {self.timeout:g} s ({error}). Run the batch again "
                "when the receiver answers; the alerts that were taken are not sent again."
            ) from error

    def send_all(self) -> None:
        """Send all messages that wait.

        Raises:
            Overloaded: the receiver takes nothing.
        """
        try:
            self._send_oldest(None)
        except Busy as error:
            [first] = outbox.waiting(self.connection, self.name, 1)
            raise Overloaded(
                f"{self.name}: the receiver has taken none of {self.waiting()} alerts for {self.timeout:g} s, such as "
                f"{first.id} ({error}). Run the batch again; the alerts that were taken are not sent again."
            ) from error

    def send_until(self, deadline: float) -> None:
        """Send messages until none is left or the time is over (monotonic clock)."""
        try:
            for message in self._oldest():
                self._send(message, deadline)
        except Busy as error:
            log.warning("%s: the receiver is busy (%s); %d alerts are left", self.name, error, self.waiting())

    def drop_rest(self) -> int:
        """Give up the messages that wait; return how many they were."""
        ids = outbox.drop_waiting(self.connection, self.name, "the receiver was busy")
        if ids:
            shown = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
            log.error("%s: %d alerts were dropped, because the receiver is busy: %s", self.name, len(ids), shown)
        return len(ids)

    def _oldest(self) -> Iterator[Message]:
        """The messages that wait, oldest first. Each must be sent or refused before the next one is taken."""
        while page := outbox.waiting(self.connection, self.name, PIECE):
            yield from page

    def _send_oldest(self, number: int | None) -> None:
        """Send some messages (None: all), and wait for the receiver as long as it takes them.

        Raises:
            Busy: it has taken none for the sink's timeout.
        """
        for message in islice(self._oldest(), number):
            self._send(message, time.monotonic() + self.timeout)

    def _send(self, message: Message, deadline: float) -> None:
        try:
            _retry_until(deadline, self._transport, message)
        except MessageRefused as error:
            log.error("%s: alert %s was refused, and is not sent again: %s", self.name, message.id, error)
            outbox.mark(self.connection, self.name, message.id, State.REFUSED, str(error))
            self.refused += 1
            return
        failpoint("deliver-direct-sent")
        outbox.mark(self.connection, self.name, message.id, State.SENT)
        self.sent += 1


def _retry_until(deadline: float, transport: Transport, message: Message) -> None:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise Busy("the time of this batch is used up")
    busy, pause = retry_if_exception_type(Busy), wait_random_exponential(0.1, max=2)
    Retrying(stop=stop_after_delay(seconds), wait=pause, retry=busy, reraise=True)(transport.send, message)
