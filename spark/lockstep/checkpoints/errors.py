"""The errors of the checkpoints."""

from lockstep.errors import LockstepError


class ActionRefused(LockstepError):
    """The action cannot be carried out. Nothing was changed."""


class CheckpointBroken(LockstepError):
    """A file of a checkpoint is missing, cut short or changed, and cannot be restored from the journal."""


class CheckpointIncompatible(LockstepError):
    """The query has changed so that it cannot continue from its checkpoint."""
