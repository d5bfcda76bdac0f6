"""What goes wrong with the stack, said so that a person can mend it."""

from lockstep.errors import LockstepError


class StackError(LockstepError):
    """Something of the stack cannot go on.

    Args:
        what: what happened, and where (the part, the file, the port).
        fix: what to do about it.
    """

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}\n  To fix it: {fix}")
        self.what = what
        self.fix = fix


class Unhealthy(Exception):
    """A part does not answer as it should (yet); the message says what was asked and what came back."""
