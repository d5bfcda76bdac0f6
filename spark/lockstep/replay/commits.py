"""The commits that replays have made to the real tables. They tell what is promoted or undone, however the task ended."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from pydantic import Field

from lockstep import lake
from lockstep.definition.view import Interval
from lockstep.lake import Commit
from lockstep.ledger.ranges import Range, decode
from lockstep.replay.record import Replay
from lockstep.replay.runs import overlap
from lockstep.replay.stages import Model
from lockstep.replay.tables import tables_written

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The clock in Delta's log and ours are of one machine, or of a cluster whose clocks are set: they differ by far less than this.
CLOCKS_DIFFER_MS = 3_600_000


class Action(StrEnum):
    """What a replay does to the real tables."""

    PROMOTE = "promote"
    UNDO = "undo"


class ReplayCommit(Model):
    """One commit of a replay to a table.

    Args:
        ranges: the position of the table; empty for a table without a ledger.
        replayed: the ranges whose rows were replaced, in bronze and silver.
        span: the rows of a view that were replaced; in gold.
        counts: by how much the sums of the table changed.
    """

    version: int
    replay: str
    action: Action = Field(alias="stage")
    ranges: tuple[Range, ...] = ()
    replayed: tuple[Range, ...] = ()
    span: Interval | None = None
    counts: Mapping[str, int] = {}

    @classmethod
    def of(cls, commit: Commit) -> Self | None:
        """The commit, if a replay has made it."""
        if "replay" not in commit.record or "stage" not in commit.record:
            return None
        ranges = {name: decode(commit.record[name]) for name in ("ranges", "replayed") if name in commit.record}
        return cls.model_validate({**commit.record, **ranges, "version": commit.version})

    def overlaps(self, other: "ReplayCommit") -> bool:
        """Whether both have replaced any of the same rows of one table."""
        if self.span and other.span:
            (low, high), (start, end) = self.span, other.span
            # An upserted view is written as a whole, and its span may be empty.
            return (low < end and start < high) or low >= high or start >= end
        return overlap(self.replayed, other.replayed)


def commits_of_replay(settings: "Settings", table: str, replay: Replay) -> dict[Action, ReplayCommit]:
    """The replay's commits to a table. Commits that are older than its plan are not read."""
    commits: dict[Action, ReplayCommit] = {}
    for commit in lake.commits(settings, table):
        if commit.timestamp and commit.timestamp < replay.opened_at - CLOCKS_DIFFER_MS:
            break
        own = ReplayCommit.of(commit)
        if own and own.replay == replay.id:
            commits[own.action] = own
    return commits


def committed_tables(settings: "Settings", replay: Replay, action: Action) -> dict[str, ReplayCommit]:
    """By table, upstream first, the commit that promoted or undid the replay there."""
    commits = {t: commits_of_replay(settings, t, replay).get(action) for t in tables_written(replay.plan)}
    return {table: commit for table, commit in commits.items() if commit}


def is_partly_promoted(settings: "Settings", replay: Replay) -> bool:
    """Whether any table was promoted, even if the record does not say so yet."""
    return bool(committed_tables(settings, replay, Action.PROMOTE))


def promoted_over(settings: "Settings", table: str, promotion: ReplayCommit) -> Iterator[ReplayCommit]:
    """The promotions of other replays to a table since this one, without those that were undone."""
    undone = set()
    for commit in lake.commits(settings, table):
        if commit.version <= promotion.version:
            return
        later = ReplayCommit.of(commit)
        if later and later.action is Action.UNDO:
            undone.add(later.replay)
        elif later and later.replay not in undone:
            yield later
