"""The errors of commands."""

from lockstep.errors import LockstepError


class CommandsFailed(LockstepError):
    """Kafka did not confirm a transaction, or a command cannot be decided. Nothing of the transaction is read by anybody."""


class Fenced(CommandsFailed):
    """A newer processor decides for the partition. This one must stop."""


class TopicsDiffer(LockstepError):
    """The topics of an aggregate do not have the partitions that it declares."""


class LogUnreadable(LockstepError):
    """A record of the log cannot be read, or the log cannot be read to its end."""


class NoOutcome(LockstepError):
    """A command was sent, and its outcome is not there yet."""


class UnknownAggregate(LockstepError):
    """No aggregate has that name."""


class CommandInvalid(LockstepError):
    """It is no command of the aggregate."""
