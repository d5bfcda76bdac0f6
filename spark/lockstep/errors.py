"""The refusals of the platform. Each says what happened, where, and what to do."""


class LockstepError(Exception):
    """Something that Lockstep refuses to go past by itself."""


class DataLoss(LockstepError):
    """Offsets that the ledger still needs are gone from the log."""


class TopicRecreated(LockstepError):
    """The topic has another id than the one that the ledger knows, so its offsets mean other records."""


class LedgerBroken(LockstepError):
    """The ledger has a gap, an overlap, a missing tip, or a count that does not fit."""


class UnknownView(LockstepError):
    """No view has that name."""


class LeaseHeld(LockstepError):
    """Another writer holds the table."""


class Overtaken(LockstepError):
    """A run whose task had died has committed in the place of this one."""
