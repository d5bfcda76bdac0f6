"""The problems that are open: since when, who was told, and who could not be. Pure, but for the file that keeps them.

The monitor writes the file at each look. It is no table, because it must be there when no database answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from lockstep import atomic_files
from lockstep.status.model import Problem

if TYPE_CHECKING:
    from lockstep.settings import Settings

# A service that is restarted is healthy again within this. Nobody is told of a problem that was shorter.
_TOLD_AFTER = timedelta(seconds=30)
# A problem that comes back within this has not been over.
_OVER_AFTER = timedelta(seconds=60)
# The kinds of problems that nobody can judge while a service does not answer: they stay as they were.
_NOT_JUDGED = {
    "unreachable:airflow": ("dag-",),
    "unreachable:kafka": ("lag:", "topic:", "clocks:", "sums:", "transaction:"),
    "unreachable:postgres": (
        "lag:",
        "topic:",
        "captured:",
        "sums:",
        "transaction:",
        "live-",
        "late:",
        "gate:",
        "marts:",
        "unexplained:",
    ),
}


@dataclass(frozen=True)
class OpenProblem:
    """A problem that is open.

    Args:
        problem: as it was told, or last seen if it was not; its ``since`` is known.
        told: a notice of it was made.
        gone_at: when it was not seen any more (UTC), if it is not over yet.
    """

    problem: Problem
    told: bool = False
    gone_at: datetime | None = None


@dataclass(frozen=True)
class Notice:
    """What changed at one look: the problems that are new, and those that are over."""

    at: datetime
    new: tuple[Problem, ...] = ()
    over: tuple[Problem, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.over)

    @property
    def subject(self) -> str:
        """One line."""
        changes = [p.what for p in self.new] + [f"over: {p.what}" for p in self.over]
        if len(changes) == 1:
            return f"Lockstep: {changes[0]}"
        counts = {"new": len(self.new), "over": len(self.over)}
        return "Lockstep: " + ", ".join(f"{count} {name}" for name, count in counts.items() if count)

    @property
    def text(self) -> str:
        """One line for each problem."""
        over = (f"OVER at {self.at:%F %T} UTC: {p.what} (since {p.since:%F %T} UTC)" for p in self.over)
        return "\n".join([*(f"NEW {p}" for p in self.new), *over])


@dataclass(frozen=True)
class Unsent:
    """The notices that a notifier has to send, the oldest first, and why it could not; empty: it has not tried yet."""

    notices: tuple[Notice, ...]
    error: str


@dataclass(frozen=True)
class Memory:
    """What the monitor remembers from one look to the next.

    Args:
        open: by key, the problems that are open.
        unsent: by notifier, what it could not send.
    """

    open: Mapping[str, OpenProblem] = field(default_factory=dict)
    unsent: Mapping[str, Unsent] = field(default_factory=dict)


def look(
    before: Mapping[str, OpenProblem], problems: Iterable[Problem], now: datetime
) -> tuple[dict[str, OpenProblem], Notice]:
    """What is open after a look, and the notice of what has changed.

    Args:
        problems: what was seen.
    """
    seen = {problem.key: problem for problem in problems}
    kinds = tuple(kind for key in seen for kind in _NOT_JUDGED.get(key, ()))
    after: dict[str, OpenProblem] = {}
    new, over = [], []
    for key, problem in seen.items():
        known = before.get(key)
        since = (known.problem.since if known else problem.since) or now
        told = known.told if known else False
        # What was told is over in the same words: a service that is stopped is unhealthy before it is well again.
        current = known.problem if known and told else replace(problem, since=since)
        if known and not told and now - since >= _TOLD_AFTER:
            new.append(current)
            told = True
        after[key] = OpenProblem(current, told)
    for key, known in before.items():
        if key in seen:
            continue
        if kinds and key.startswith(kinds):
            after[key] = known
            continue
        gone_at = known.gone_at or now
        if known.told and now - gone_at < _OVER_AFTER:
            after[key] = replace(known, gone_at=gone_at)
        elif known.told:
            over.append(known.problem)
    return after, Notice(now, tuple(new), tuple(over))


def load(settings: "Settings") -> Memory:
    """What the monitor remembers; nothing before its first look."""
    file = _file(settings)
    return _MEMORY.validate_json(file.read_bytes()) if file.exists() else Memory()


def save(settings: "Settings", memory: Memory) -> None:
    """Replace what the monitor remembers, all of it or nothing."""
    atomic_files.replace(_file(settings), _MEMORY.dump_json(memory, indent=2))


_MEMORY = TypeAdapter(Memory)


def _file(settings: "Settings") -> Path:
    return settings.home / "run" / "problems.json"
