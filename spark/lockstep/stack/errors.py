"""The errors of the stack. Each says what happened, where, and what a person can do about it."""

from lockstep.errors import LockstepError


class StackError(LockstepError):
    """The stack cannot go on.

    Args:
        what: what happened, and where (the service, the file, the port).
        fix: what to do about it.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}\n  To fix it: {fix}")
        self.what = what
        self.fix = fix


class Unhealthy(Exception):
    """A service does not answer as it should, or not yet. The message says what was asked and what came back."""
