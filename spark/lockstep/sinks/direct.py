"""Direct messages: rows sent to a receiver without a log between, so that a slow receiver is the sender's trouble.

What then becomes of the rows is a choice: ``drop`` them, ``buffer`` them, or ``backpressure``, which makes the query wait.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from lockstep import settings
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.definition.alerting import Overload
from lockstep.failpoints import failpoint
from lockstep.sinks import outbox
from lockstep.sinks.errors import Overloaded
from lockstep.sinks.outbox import State
from lockstep.sinks.sink import Message, checked_name, messages

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.sinks")


class Busy(Exception):
    """The receiver does not answer, or asks to be tried later."""


class Refused(Exception):
    """The receiver will never take this message."""


class Outlet(Protocol):
    """A way to a receiver."""

    def send(self, message: Message) -> None:
        """Hand the message over, once.

        Raises:
            Busy: try again later.
            Refused: it will not be taken, however often it is tried.
        """


@dataclass(frozen=True)
class DirectSink:
    """A receiver that one query sends its rows to.

    Args:
        name: of the sender, such as the view's name; no two queries share one.
        outlet: makes the way to the receiver from the settings, such as :class:`~lockstep.sinks.webhook.Webhook`.
        overload: what becomes of the rows that the receiver has not taken within ``patience`` seconds a batch.
        limit: ``buffer`` keeps at most so many rows, and then exerts backpressure.
    """

    name: str
    outlet: "Callable[[Settings], Outlet]"
    overload: Overload = Overload.BACKPRESSURE
    patience: float = 10.0
    limit: int = 10_000

    def __post_init__(self) -> None:
        checked_name(self.name)


@dataclass(frozen=True)
class Outcome:
    """What became of a batch: how many were sent now, wait, were dropped or refused, and were known before."""

    sent: int = 0
    waiting: int = 0
    dropped: int = 0
    refused: int = 0
    repeated: int = 0


class ToReceiver:
    """The sink of a live query (``foreachBatch``) or of a batch job. Pickled to the Spark server: it holds names only."""

    def __init__(self, sink: DirectSink) -> None:
        self.sink = sink

    def __call__(self, rows: "DataFrame | Iterable[Mapping[str, Any]]", _batch_id: int) -> Outcome:
        """Send what waits and then the rows, each once unless the sender is killed between sending and writing that down.

        Raises:
            RowRefused: a row has no ``alert_id``; nothing was sent.
            Overloaded: the sink exerts backpressure, or its buffer is full; run the batch again.
        """
        return deliver(settings.load(), self.sink, list(messages(rows, self.sink.name)))


def deliver(config: "Settings", sink: DirectSink, rows: list[Message]) -> Outcome:
    """The same, for rows that have their form. Without rows it sends what waits."""
    # One sender at a time: two would both find a row waiting, and both send it.
    with lease(config, f"deliver.{sink.name}", "deliver"), control(config) as connection:
        outbox.prepare(connection, sink.name)
        before = outbox.waiting(connection, sink.name)
        if len(before) + len(rows) > sink.limit and sink.overload == Overload.BUFFER:
            sent, refused, before = _send(config, sink, connection)
            if len(before) + len(rows) > sink.limit:
                raise Overloaded(
                    f"{sink.name}: {len(before)} alerts wait and {len(rows)} more came, but its buffer holds {sink.limit}: "
                    "none of these was taken. The batch has to run again when the receiver is well."
                )
        else:
            sent = refused = 0
        new = outbox.put(connection, sink.name, rows) if rows else 0
        now_sent, now_refused, left = _send(config, sink, connection)
        dropped = _overload(sink, connection, left) if left else 0
    return Outcome(sent + now_sent, len(left) - dropped, dropped, refused + now_refused, len(rows) - new)


def _send(config: "Settings", sink: DirectSink, connection: "Connection") -> tuple[int, int, list[Message]]:
    """Send what waits, oldest first, for as long as the sink is patient: how many were sent and refused, and what is left."""
    line = outbox.waiting(connection, sink.name)
    outlet, until = sink.outlet(config), time.monotonic() + sink.patience
    sent = refused = 0
    for number, message in enumerate(line):
        try:
            _patiently(until - time.monotonic(), outlet, message)
        except Busy as error:
            log.warning("%s: the receiver is busy (%s); %d alerts are left", sink.name, error, len(line) - number)
            return sent, refused, line[number:]
        except Refused as error:
            log.error("%s: alert %s was refused, and is not sent again: %s", sink.name, message.id, error)
            outbox.mark(connection, sink.name, [message.id], State.REFUSED, str(error))
            refused += 1
            continue
        failpoint("deliver-direct-sent")
        outbox.mark(connection, sink.name, [message.id], State.SENT)
        sent += 1
    return sent, refused, []


def _patiently(seconds: float, outlet: Outlet, message: Message) -> None:
    if seconds <= 0:
        raise Busy("the time of this batch is used up")
    again = retry_if_exception_type(Busy)
    waits = wait_random_exponential(0.1, max=2)
    Retrying(stop=stop_after_delay(seconds), wait=waits, retry=again, reraise=True)(outlet.send, message)


def _overload(sink: DirectSink, connection: "Connection", left: list[Message]) -> int:
    """Do with the rest what the sink says; returns how many were dropped."""
    ids = [message.id for message in left]
    if sink.overload == Overload.BACKPRESSURE:
        raise Overloaded(
            f"{sink.name}: the receiver has not taken {len(ids)} alerts within {sink.patience:g} s, such as {ids[0]}. "
            "The batch has to run again; what was taken is not sent again."
        )
    if sink.overload == Overload.BUFFER:
        return 0
    log.error("%s: %d alerts were dropped, because the receiver is busy: %s", sink.name, len(ids), ", ".join(ids))
    outbox.mark(connection, sink.name, ids, State.DROPPED, "the receiver was busy")
    return len(ids)
