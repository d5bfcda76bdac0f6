"""The refusals of the checkpoints."""

from lockstep.errors import LockstepError


class Refused(LockstepError):
    """What was asked for cannot be done; nothing was touched."""


class CheckpointBroken(LockstepError):
    """A file of a checkpoint is missing, cut short, holed or changed, and cannot be put back."""


class CheckpointIncompatible(LockstepError):
    """The query has changed in a way that its checkpoint cannot follow."""
