"""The refusals of the sinks outside the lake."""

from lockstep.errors import LockstepError


class NameRefused(LockstepError):
    """A sink or its topic cannot be called so."""


class RowRefused(LockstepError):
    """A row lacks what every delivered row must have."""


class DeliveryFailed(LockstepError):
    """The other side did not take everything; the micro-batch is not acknowledged, and will be run again."""


class Fenced(LockstepError):
    """Another process has begun to deliver for the same sink, and this one must not go on."""


class Overloaded(LockstepError):
    """The receiver is too slow, and the sink is set to exert backpressure."""
