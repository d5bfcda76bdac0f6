"""What can be wrong with schemas, and with values of them."""

from lockstep.errors import LockstepError


class SchemaInvalid(LockstepError):
    """A text is no schema of its format, or it uses what Lockstep cannot read."""


class Undecodable(ValueError):
    """A record's value cannot be read. The text is the reason with which it goes to quarantine: short, and without data."""
