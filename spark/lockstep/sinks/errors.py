"""The errors of the sinks."""

from lockstep.errors import LockstepError


class InvalidName(LockstepError):
    """Invalid name of a sink or its topic."""


class InvalidRow(LockstepError):
    """A row has no valid ``alert_id``."""


class DeliveryFailed(LockstepError):
    """Kafka did not acknowledge every row. The micro-batch fails, and Spark runs it again."""


class Fenced(LockstepError):
    """A newer process delivers for the same sink. This one must stop."""


class Overloaded(LockstepError):
    """The receiver is too slow, and the sink exerts backpressure. The micro-batch fails, and Spark runs it again."""
