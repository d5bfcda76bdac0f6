"""The platform's errors. Each says what happened, where, and what to do."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

log = logging.getLogger(__name__)


class LockstepError(Exception):
    """Lockstep cannot go on by itself."""


class SomeFailed(LockstepError):
    """Some of several items failed, and the others are done. The message names each with its reason.

    Args:
        what: was done to them, such as ``publish the results``.
        failures: by item, why it failed.
    """

    def __init__(self, what: str, failures: Mapping[str, Exception]) -> None:
        reasons = "\n  ".join(f"{item}: {error}" for item, error in failures.items())
        super().__init__(f"{what}: {len(failures)} failed, the others are done:\n  {reasons}")
        self.failures = failures


class Failures(dict[str, Exception]):
    """By item, why it failed, while the work on the other items goes on."""

    @contextmanager
    def of(self, item: str, *kinds: type[Exception]) -> Iterator[None]:
        """Keep why the block fails for an item, if it is an error of these kinds; the first one counts."""
        try:
            yield
        except kinds as error:
            log.exception("%s failed, and the others go on", item)
            self.setdefault(item, error)

    def check(self, what: str) -> None:
        """Raise what was kept.

        Raises:
            SomeFailed: an item failed.
        """
        if self:
            raise SomeFailed(what, self)


class DataLoss(LockstepError):
    """Offsets that the ledger still needs are gone from the log."""


class TopicForbidden(LockstepError):
    """The account lacks a right on the topic."""

    def __init__(self, kafka: str, topic: str, may_not: str, right: str) -> None:
        super().__init__(
            f"The account may not {may_not} the topic {topic} of {kafka}. Give it the right {right} on the topic: "
            f"`lockstep kafka acls --add --allow-principal User:… --operation {right} --topic {topic}`."
        )


class TopicRecreated(LockstepError):
    """The topic has another id than in the ledger, so its offsets are those of other records."""


class LedgerBroken(LockstepError):
    """The ledger has a gap, an overlap, a missing tip, or a count that does not fit."""


class UnknownView(LockstepError):
    """No view has that name."""


class ViewRefused(LockstepError):
    """A view cannot run as it is declared.

    Args:
        problems: the reasons, each with its fix.
    """

    def __init__(self, view: str, problems: Iterable[str]) -> None:
        self.problems = [*problems]
        super().__init__(f"The view {view} is refused, and nothing of it was started:\n  " + "\n  ".join(self.problems))


class ColumnsRefused(LockstepError):
    """A table cannot follow the columns that a contract or a view declares now.

    Attributes:
        way: what can be done instead.
    """

    way = (
        "Columns can be added, and their types can become wider: a larger integer, DOUBLE for FLOAT, a DECIMAL with more "
        "digits before the point. All else stays as it is. Declare it as it was, and give what is new a name of its own: "
        "old rows have null there until a replay computes them again."
    )

    def __init__(self, table: str, problems: Iterable[str]) -> None:
        super().__init__(
            f"{table} cannot have the columns that are declared now, and nothing was written:\n  "
            + "\n  ".join(problems)
            + f"\n{self.way}"
        )


class LeaseHeld(LockstepError):
    """Another writer holds the table."""


class Overtaken(LockstepError):
    """A run whose task had died has committed in place of this one."""
