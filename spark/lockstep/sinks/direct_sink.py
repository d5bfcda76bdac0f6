"""A sink that sends rows straight to a receiver, without a log between. A slow receiver is therefore the sender's problem.

If the receiver does not take the rows in time, the sink either drops them (``drop``), keeps them (``buffer``) or makes the query
wait (``backpressure``).
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from lockstep import settings
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition.alerting import Overload
from lockstep.failpoints import failpoint
from lockstep.sinks import outbox
from lockstep.sinks.errors import Overloaded
from lockstep.sinks.message import Message, check_name, messages
from lockstep.sinks.outbox import State
from lockstep.sinks.transport import Busy, MessageRefused, Transport

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.sinks")


@dataclass(frozen=True)
class DirectSinkConfig:
    """Which receiver a query sends its rows to, and what happens if the receiver is slow.

    Args:
        name: identifies the sender, such as the view's name. No two queries share one.
        transport: makes the transport from the settings, such as :class:`~lockstep.sinks.webhook.Webhook`.
        overload: what happens to rows that the receiver has not taken within ``timeout``.
        timeout: seconds that sending may take in each batch.
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
            InvalidRow: a row has no ``alert_id``. Nothing was sent.
            Overloaded: the sink exerts backpressure, or its buffer is full. Run the batch again.
        """
        return deliver(settings.load(), self.config, list(messages(rows, self.config.name)))


def deliver(platform: "Settings", sink: DirectSinkConfig, rows: list[Message]) -> Outcome:
    """Send the messages that wait, then these. Without ``rows`` it sends only those that wait.

    Raises:
        Overloaded: the sink exerts backpressure, or its buffer is full. Run the batch again.
    """
    # One sender at a time: two senders would find the same message waiting, and both would send it.
    with lease(platform, f"deliver.{sink.name}", "deliver"), control(platform) as connection:
        outbox.prepare(connection, sink.name)
        sent = refused = 0
        if sink.overload == Overload.BUFFER and len(outbox.waiting(connection, sink.name)) + len(rows) > sink.limit:
            sent, refused, left = _send(platform, sink, connection)
            if len(left) + len(rows) > sink.limit:
                raise Overloaded(
                    f"{sink.name}: {len(left)} alerts wait and {len(rows)} more came, but its buffer holds {sink.limit}: "
                    "none of the new ones was taken. Run the batch again when the receiver answers."
                )
        new = outbox.put(connection, sink.name, rows) if rows else 0
        sent_now, refused_now, left = _send(platform, sink, connection)
        dropped = _handle_overload(sink, connection, left) if left else 0
    return Outcome(sent + sent_now, len(left) - dropped, dropped, refused + refused_now, len(rows) - new)


def _send(platform: "Settings", sink: DirectSinkConfig, connection: "Connection") -> tuple[int, int, list[Message]]:
    """Send the messages that wait, oldest first, until the timeout: how many were sent, how many refused, and which are left."""
    queue = outbox.waiting(connection, sink.name)
    transport, deadline = sink.transport(platform), time.monotonic() + sink.timeout
    sent = refused = 0
    for number, message in enumerate(queue):
        try:
            _retry_until(deadline, transport, message)
        except Busy as error:
            log.warning("%s: the receiver is busy (%s); %d alerts are left", sink.name, error, len(queue) - number)
            return sent, refused, queue[number:]
        except MessageRefused as error:
            log.error("%s: alert %s was refused, and is not sent again: %s", sink.name, message.id, error)
            outbox.mark(connection, sink.name, [message.id], State.REFUSED, str(error))
            refused += 1
            continue
        failpoint("deliver-direct-sent")
        outbox.mark(connection, sink.name, [message.id], State.SENT)
        sent += 1
    return sent, refused, []


def _retry_until(deadline: float, transport: Transport, message: Message) -> None:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise Busy("the time of this batch is used up")
    busy, pause = retry_if_exception_type(Busy), wait_random_exponential(0.1, max=2)
    Retrying(stop=stop_after_delay(seconds), wait=pause, retry=busy, reraise=True)(transport.send, message)


def _handle_overload(sink: DirectSinkConfig, connection: "Connection", left: list[Message]) -> int:
    """Do what the sink chose with the messages that are left; return how many were dropped."""
    ids = [message.id for message in left]
    if sink.overload == Overload.BACKPRESSURE:
        raise Overloaded(
            f"{sink.name}: the receiver has not taken {len(ids)} alerts within {sink.timeout:g} s, such as {ids[0]}. "
            "Run the batch again; the alerts that were taken are not sent again."
        )
    if sink.overload == Overload.BUFFER:
        return 0
    log.error("%s: %d alerts were dropped, because the receiver is busy: %s", sink.name, len(ids), ", ".join(ids))
    outbox.mark(connection, sink.name, ids, State.DROPPED, "the receiver was busy")
    return len(ids)
