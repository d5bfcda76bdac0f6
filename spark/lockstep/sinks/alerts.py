"""Alerts: rows of the views that declare them.

Each alert goes to the topic ``alerts``, and directly to the webhook and the mail server that the settings name.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lockstep import settings
from lockstep.control.database import control
from lockstep.definition.alerting import Alerting
from lockstep.definition.registry import VIEWS
from lockstep.errors import LeaseHeld, LockstepError
from lockstep.sinks import direct_sink, outbox
from lockstep.sinks.direct_sink import DirectSink, DirectSinkConfig
from lockstep.sinks.kafka_sink import KafkaSink, KafkaSinkConfig
from lockstep.sinks.mail import Mail
from lockstep.sinks.message import ID
from lockstep.sinks.transport import Transport
from lockstep.sinks.webhook import Webhook

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

log = logging.getLogger("lockstep.sinks")

# How long a receiver may delay one micro-batch, unless its alerts exert backpressure or the buffer is full. Live views promise
# seconds, so this is short.
TIMEOUT_SECONDS = 2.0
Sink = Callable[["DataFrame", int], object]


class Alerts:
    """Sends the rows of a view's micro-batch as alerts. It is pickled to the Spark server, and opens its sinks there."""

    def __init__(self, view: str, generation: int, alerting: Alerting) -> None:
        self.view, self.generation, self.alerting = view, generation, alerting
        self._sinks: list[Sink] = []

    def __call__(self, rows: "DataFrame", batch_id: int) -> None:
        """Send the rows, to the topic first.

        Raises:
            DeliveryFailed, Fenced: the topic did not take them; run the batch again.
            Overloaded: a receiver is busy, and the view's alerts exert backpressure or its buffer is full; run the batch again.
        """
        if not self._sinks:
            self._sinks = self._open(settings.load())
        alerts = with_alert_id(rows, self.view, self.alerting.id)
        for send in self._sinks:
            send(alerts, batch_id)

    def _open(self, platform: "Settings") -> list[Sink]:
        topic = KafkaSinkConfig(self.view, key=self.alerting.key, delivery=self.alerting.delivery)
        direct = [DirectSink(receiver) for receiver in receivers(platform, self.view, self.alerting)]
        return [KafkaSink(topic, self.generation), *direct]


def receivers(platform: "Settings", view: str, alerting: Alerting) -> list[DirectSinkConfig]:
    """The direct sinks of a view: one for each receiver that the settings name."""
    transports: dict[str, tuple[Callable[[Settings], Transport], str]] = {
        "webhook": (Webhook, platform.webhook_url),
        "mail": (Mail, platform.mail_server),
    }
    return [
        DirectSinkConfig(f"{view}.{kind}", transport, alerting.overload, TIMEOUT_SECONDS)
        for kind, (transport, address) in transports.items()
        if address
    ]


def with_alert_id(rows: "DataFrame", view: str, id: tuple[str, ...]) -> "DataFrame":
    """The rows with ``alert_id`` and ``alert`` (the view's name), and without the lake's own columns."""
    from pyspark.sql import functions as F

    parts = F.to_json(F.struct(F.lit(view).alias("alert"), *id))
    columns = [name for name in rows.columns if not name.startswith("_")]
    return rows.select(F.substring(F.sha2(parts, 256), 1, 32).alias(ID), F.lit(view).alias("alert"), *columns)


def send_waiting(platform: "Settings") -> int:
    """Send the alerts that wait in the buffers, for a few seconds each; return how many were sent. Log each busy receiver."""
    sent = 0
    with control(platform) as connection:
        waiting = {sink for sink, states in outbox.counts(connection).items() if states[outbox.State.WAITING]}
    for view, alerting in alerting_views().items():
        for sink in receivers(platform, view, alerting):
            if sink.name in waiting:
                try:
                    sent += direct_sink.send_waiting(platform, sink).sent
                except LeaseHeld:
                    log.info("%s: a micro-batch sends its alerts now", sink.name)
                except LockstepError as error:
                    log.warning("%s", error)
    return sent


def alerting_views() -> dict[str, Alerting]:
    """Which views of the project raise alerts, and how those leave the lake."""
    return {view.name: view.alerts for view in VIEWS.values() if view.alerts}
