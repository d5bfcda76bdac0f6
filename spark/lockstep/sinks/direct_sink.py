"""A sink that sends rows straight to a receiver, without a log between. A slow receiver is therefore the sender's problem.

If the receiver does not take the rows in time, the sink either drops them (``drop``), keeps them (``buffer``) or makes the query
wait (``backpressure``). A batch of any size goes through the outbox in pieces, so what waits there is bounded.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from lockstep import settings
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition.alerting import Overload
from lockstep.sinks import outbox
from lockstep.sinks.message import Message, check_name, messages
from lockstep.sinks.sender import PIECE, Sender
from lockstep.sinks.transport import Transport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

# A micro-batch may send for minutes. Who only looks for alerts that wait comes back later.
_LEASE_SECONDS = 1


@dataclass(frozen=True)
class DirectSinkConfig:
    """Which receiver a query sends its rows to, and what happens if the receiver is slow.

    Args:
        name: identifies the sender, such as the view's name. No two queries share one.
        transport: makes the transport from the settings, such as :class:`~lockstep.sinks.webhook.Webhook`.
        overload: what happens to rows that the receiver has not taken within ``timeout``.
        timeout: in seconds. ``drop`` and ``buffer`` send for so long in each batch. Where a query waits for the receiver
            (``backpressure``, or a full buffer), it goes on as long as the receiver takes an alert within this time.
        limit: how many rows ``buffer`` keeps. Beyond that it exerts backpressure.
    """

    name: str
    transport: "Callable[[Settings], Transport]"
    overload: Overload = Overload.BACKPRESSURE
    timeout: float = 10.0
    limit: int = 10_000

    def __post_init__(self) -> None:
        check_name(self.name)


@dataclass(frozen=True)
class Outcome:
    """What happened to the rows of a batch.

    Attributes:
        sent: rows that were sent now, those that had waited included.
        waiting: rows that wait in the buffer.
        dropped: rows that were given up because the receiver was busy.
        refused: rows that the receiver will never take.
        repeated: rows of this batch that an earlier run had recorded already.
    """

    sent: int = 0
    waiting: int = 0
    dropped: int = 0
    refused: int = 0
    repeated: int = 0


class DirectSink:
    """Sends the micro-batches of a live query (``foreachBatch``) or of a batch job to a receiver.

    It is pickled to the Spark server, so it holds only the configuration.
    """

    def __init__(self, config: DirectSinkConfig) -> None:
        self.config = config

    def __call__(self, rows: "DataFrame | Iterable[Mapping[str, Any]]", _batch_id: int) -> Outcome:
        """Send the rows that wait, then these. Each is sent once, unless the sender is killed between sending and recording.

        Raises:
            InvalidRow: a row has no ``alert_id``. The rows before it may have been sent.
            Overloaded: the receiver takes nothing, and the sink exerts backpressure or its buffer is full. Run the batch again.
        """
        return deliver(settings.load(), self.config, messages(rows, self.config.name))


def deliver(platform: "Settings", sink: DirectSinkConfig, rows: Iterable[Message]) -> Outcome:
    """Send the messages that wait, then these.

    They are taken from ``rows`` in pieces, and each piece is in the outbox before the next one is taken. So a batch that runs
    again goes on where it was stopped.

    Raises:
        Overloaded: the receiver takes nothing, and the sink exerts backpressure or its buffer is full. Run the batch again.
    """
    with _sender(platform, sink) as sender:
        deadline = time.monotonic() + sink.timeout
        repeated = dropped = 0
        for piece in _pieces(rows, min(PIECE, sink.limit)):
            new = outbox.unknown(sender.connection, sink.name, piece)
            if sink.overload == Overload.BUFFER:
                sender.make_room(len(new), sink.limit)
            repeated += len(piece) - outbox.put(sender.connection, sink.name, new)
            match sink.overload:
                case Overload.BACKPRESSURE:
                    sender.send_all()
                case Overload.DROP:
                    sender.send_until(deadline)
                    dropped += sender.drop_rest()
        if sink.overload == Overload.BUFFER:
            sender.send_until(deadline)
        return Outcome(sender.sent, sender.waiting(), dropped, sender.refused, repeated)


def send_waiting(platform: "Settings", sink: DirectSinkConfig) -> Outcome:
    """Send messages that wait, until the sink's timeout; what is left goes on waiting.

    Raises:
        LeaseHeld: a micro-batch sends now.
    """
    with _sender(platform, sink, _LEASE_SECONDS) as sender:
        sender.send_until(time.monotonic() + sink.timeout)
        return Outcome(sender.sent, sender.waiting(), refused=sender.refused)


def _pieces(rows: Iterable[Message], size: int) -> Iterator[list[Message]]:
    remaining = iter(rows)
    while piece := list(islice(remaining, size)):
        yield piece


@contextmanager
def _sender(platform: "Settings", sink: DirectSinkConfig, wait_seconds: int = 120) -> Iterator[Sender]:
    """The sink's sender. There is one at a time: two would find the same message waiting, and both would send it."""
    with lease(platform, f"deliver.{sink.name}", "deliver", wait_seconds), control(platform) as connection:
        outbox.prepare(connection, sink.name)
        yield Sender(sink.name, sink.timeout, sink.transport(platform), connection)
