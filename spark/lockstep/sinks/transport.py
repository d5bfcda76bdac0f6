"""What a direct sink needs of the way to its receiver. ``webhook`` and ``mail`` implement it."""

from typing import Protocol

from lockstep.sinks.message import Message


class Busy(Exception):
    """The receiver does not answer, or asks to be tried later."""


class MessageRefused(Exception):
    """The receiver will never take this message."""


class Transport(Protocol):
    """Sends messages to one receiver."""

    def send(self, message: Message) -> None:
        """Send the message once.

        Raises:
            Busy: try again later.
            MessageRefused: the receiver will not take the message, however often it is sent.
        """
