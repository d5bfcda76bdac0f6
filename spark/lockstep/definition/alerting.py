"""What a view declares about its alerts: how its rows are sent to topics and receivers."""

from dataclasses import dataclass
from enum import StrEnum


class Delivery(StrEnum):
    """How often a row arrives when the sender is killed and runs its micro-batch again."""

    AT_MOST_ONCE = "at_most_once"
    AT_LEAST_ONCE = "at_least_once"
    EXACTLY_ONCE = "exactly_once"


class Overload(StrEnum):
    """What happens to rows that a receiver does not take in time."""

    DROP = "drop"
    BUFFER = "buffer"
    BACKPRESSURE = "backpressure"


@dataclass(frozen=True)
class Alerting:
    """How the alerts of a view are sent.

    Args:
        id: the columns that make up the idempotency key of an alert: an alert has the same key in both layers.
        key: the column whose value decides the partition of the topic.
        delivery: how often an alert arrives in the topic.
        overload: what happens to alerts that a webhook or mail server does not take in time.
    """

    id: tuple[str, ...]
    key: str
    delivery: Delivery = Delivery.EXACTLY_ONCE
    overload: Overload = Overload.BUFFER
