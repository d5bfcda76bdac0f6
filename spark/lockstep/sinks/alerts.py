"""Alerts: rows of the views that declare them, on their way out of the lake.

Each alert goes to the topic ``alerts``, and directly to the webhook and the mail server that the settings name.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lockstep import settings
from lockstep.control.database import control
from lockstep.definition.alerting import Alerting
from lockstep.definition.registry import VIEWS
from lockstep.errors import LockstepError
from lockstep.sinks import outbox
from lockstep.sinks.direct import DirectSink, Outlet, ToReceiver, deliver
from lockstep.sinks.mail import Mail
from lockstep.sinks.sink import ID, TopicSink
from lockstep.sinks.topic import ToTopic
from lockstep.sinks.webhook import Webhook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.sinks")

PATIENCE_SECONDS = 2.0
Send = Callable[["DataFrame", int], object]


class Alerts:
    """Sends a micro-batch of a view's rows as alerts. Pickled to the Spark server: it holds names only until it is called."""

    def __init__(self, view: str, generation: int, alerting: Alerting) -> None:
        self.view, self.generation, self.alerting = view, generation, alerting
        self._ways: list[Send] = []

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        """Send the rows, to the topic first.

        Raises:
            DeliveryFailed, Fenced: the topic did not take them; run the batch again.
            Overloaded: a receiver is busy, and the view's alerts exert backpressure or its buffer is full; run the batch again.
        """
        if not self._ways:
            self._ways = self._open(settings.load())
        alerts = identified(rows, self.view, self.alerting.id)
        for send in self._ways:
            send(alerts, batch_id)

    def _open(self, config: "Settings") -> list[Send]:
        own = self.alerting
        topic = ToTopic(TopicSink(self.view, key=own.key, delivery=own.delivery), self.generation)
        return [topic, *(ToReceiver(sink) for sink in receivers(config, self.view, own))]


def receivers(config: "Settings", view: str, alerting: Alerting) -> list[DirectSink]:
    """The view's direct sinks: those whose receiver the settings name."""
    named: dict[str, tuple[Callable[[Settings], Outlet], str]] = {
        "webhook": (Webhook, config.webhook_url),
        "mail": (Mail, config.mail_server),
    }
    return [
        DirectSink(f"{view}.{kind}", outlet, alerting.overload, PATIENCE_SECONDS)
        for kind, (outlet, address) in named.items()
        if address
    ]


def identified(rows: "DataFrame", view: str, id: tuple[str, ...]) -> "DataFrame":
    """The rows with ``alert_id`` and ``alert`` (the view's name), and without the columns that are the lake's own."""
    from pyspark.sql import functions as F

    parts = F.to_json(F.struct(F.lit(view).alias("alert"), *id))
    kept = [name for name in rows.columns if not name.startswith("_")]
    return rows.select(F.substring(F.sha2(parts, 256), 1, 32).alias(ID), F.lit(view).alias("alert"), *kept)


def send_waiting(config: "Settings") -> int:
    """Send what waits in the buffers, for a few seconds each; returns how many were sent. A busy receiver is logged."""
    sent = 0
    with control(config) as connection:
        waiting = {sink for sink, states in outbox.counts(connection).items() if states[outbox.State.WAITING]}
    for view, alerting in alerting_views().items():
        for sink in receivers(config, view, alerting):
            if sink.name in waiting:
                try:
                    sent += deliver(config, sink, []).sent
                except LockstepError as error:
                    log.warning("%s", error)
    return sent


def alerting_views() -> dict[str, Alerting]:
    """Which views of the project raise alerts, and how those leave the lake."""
    return {view.name: view.alerts for view in VIEWS.values() if view.alerts}
