"""A sink that sends rows to a Kafka topic."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from lockstep import settings
from lockstep.definition.alerting import Delivery
from lockstep.kafka_clients import KEEP_ALL, create_topics
from lockstep.sinks.kafka_senders import BATCHES_TOPIC, AtLeastOnce, AtMostOnce, ExactlyOnce, Sender
from lockstep.sinks.message import ID, check_name, messages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.settings import Settings

ALERTS = "alerts"
CORRECTIONS = "corrections"
# What is sent is for its receivers: the platform never reads it back. They have a week, which is Kafka's own default, and a
# person who is erased is gone by then. A segment goes as a whole, so it is of one day.
SENT = KEEP_ALL | {"retention.ms": str(7 * 86_400_000), "segment.ms": str(86_400_000)}


@dataclass(frozen=True)
class KafkaSinkConfig:
    """Which topic a query sends its rows to, and how.

    Args:
        name: identifies the sender, such as the view's name. No two queries share one.
        topic: is created if it does not exist.
        key: the column that becomes the record's key, so that rows with the same key stay in order.
        delivery: what a reader may rely on. ``exactly_once`` holds for readers with ``isolation.level=read_committed``.
    """

    name: str
    topic: str = ALERTS
    key: str = ID
    delivery: Delivery = Delivery.EXACTLY_ONCE

    def __post_init__(self) -> None:
        check_name(self.name)
        check_name(self.topic)


class KafkaSink:
    """Sends the micro-batches of a live query (``foreachBatch``) or of a batch job to a topic. Batch ids must increase.

    It is pickled to the Spark server, so it holds only the configuration, and reads the settings where it runs.

    Args:
        generation: the generation of the query's checkpoint. The batch ids of a new generation start at 0 again.
    """

    def __init__(self, config: KafkaSinkConfig, generation: int = 1) -> None:
        self.config, self.generation = config, generation
        self._sender: Sender | None = None

    def __call__(self, rows: "DataFrame | Iterable[Mapping[str, Any]]", batch_id: int) -> int:
        """Send the rows of a micro-batch; return how many this call sent.

        Raises:
            InvalidRow: a row has no ``alert_id``. The rows before it may have been sent, but not by ``exactly_once``.
            DeliveryFailed: Kafka did not acknowledge every row; run the batch again. ``at_most_once`` logs the loss instead.
            Fenced: another process delivers for this sink.
        """
        batch = messages(rows, self.config.name, self.config.key)
        first = next(batch, None)
        if first is None:
            return 0
        if self._sender is None:
            self._sender = open_sender(settings.load(), self.config, self.generation)
        return self._sender.send(chain([first], batch), batch_id)


def open_sender(platform: "Settings", sink: KafkaSinkConfig, generation: int) -> Sender:
    """Create the topics that the sink needs, and the sender for its delivery."""
    create_topics(platform, {sink.topic: {"num_partitions": 3, "configs": SENT}, **BATCHES_TOPIC})
    senders: dict[Delivery, Callable[[Settings, str, str, int], Sender]] = {
        Delivery.AT_MOST_ONCE: AtMostOnce,
        Delivery.AT_LEAST_ONCE: AtLeastOnce,
        Delivery.EXACTLY_ONCE: ExactlyOnce,
    }
    return senders[sink.delivery](platform, sink.name, sink.topic, generation)
