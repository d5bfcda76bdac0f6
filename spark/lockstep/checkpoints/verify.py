"""Verify the checkpoint of a query, and repair it from the journal where that is possible.

A checkpoint with a missing, shortened or changed file is never used: the file is restored byte by byte from the journal, or the
query is refused before it starts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.checkpoints import journal
from lockstep.checkpoints.checksums import write_with_checksum
from lockstep.checkpoints.errors import CheckpointBroken
from lockstep.checkpoints.problems import Problem, problems
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.live.generation import Generation
    from lockstep.settings import Settings

# A broken checkpoint may have hundreds of problems. A message names the first ones, which show what happened.
_PROBLEMS_NAMED = 3


@dataclass(frozen=True)
class Whole:
    """The checkpoint of a query has no problem."""

    query: str
    generation: int

    def __str__(self) -> str:
        return f"whole   {self.query}: generation {self.generation}"


@dataclass(frozen=True)
class Finding:
    """One problem of a query's checkpoint. It prints as ``mends`` if it is repairable, else as ``BROKEN``."""

    query: str
    generation: int
    problem: Problem

    @property
    def repairable(self) -> bool:
        """Whether the query's next start restores the file from the journal. If not, the query does not start."""
        return self.problem.repairable

    def __str__(self) -> str:
        word = "mends  " if self.repairable else "BROKEN "
        return f"{word} {self.query}: generation {self.generation}: {self.problem}"


def verify_query(settings: "Settings", view: "View") -> Sequence[Whole | Finding]:
    """A finding for each problem of the query's checkpoint, or that it is whole."""
    generation = generations.get(settings, view.name)
    findings = [Finding(view.name, generation.number, problem) for problem in verify(settings, [generation])]
    return findings or [Whole(view.name, generation.number)]


def verify(settings: "Settings", of_job: "Sequence[Generation]") -> list[Problem]:
    """Every problem of the checkpoint of a job, which runs these generations; none for a job that has not started."""
    job = of_job[0].job
    checkpoint, digests = Checkpoint(job.location(settings)), journal.digests(settings, job)
    jobs = {other.job for other in generations.all_current(settings).values()} | {job}
    known = {g.query: g.number for g in of_job} | {job.name: max(j.number for j in jobs if j.name == job.name)}
    newest = {g.query: generations.newest_in_lake(settings, g.query) for g in of_job}
    newest[job.name] = max(newest.get(job.name, 0), generations.newest_checkpoint(settings, job.name))
    later = [f"{name}/{number}" for name, number in newest.items() if number > known[name]]
    return [
        *problems(checkpoint, digests, _last_written_batch(settings, of_job)),
        *(Problem(name, "is a later generation, of which the control database does not know") for name in later),
    ]


def ensure_whole(settings: "Settings", of_job: "Sequence[Generation]") -> list[Problem]:
    """Make sure that a job, which runs these generations, can continue from its checkpoint, or start a new one.

    Returns:
        The problems that were repaired.

    Raises:
        CheckpointBroken: a file cannot be restored. Nothing was changed.
    """
    repairs: list[Problem] = verify(settings, of_job)
    broken = [problem for problem in repairs if not problem.repairable]
    if broken:
        query, others = of_job[0].query, len(of_job) - 1
        shared = f", which {others} other views share, " if others else " "
        raise CheckpointBroken(
            f"{query}: the checkpoint of generation {of_job[0].number}{shared}cannot be resumed: {_summary(broken)}. Its query "
            f"was not started. Restore a savepoint (`lockstep checkpoints restore {query} NAME`), or compute the view again as a "
            f"new generation (`lockstep checkpoints reset {query} --to earliest`)."
        )
    checkpoint = Checkpoint(of_job[0].job.location(settings))
    for problem in repairs:
        if problem.content is not None:
            write_with_checksum(checkpoint, problem.path, problem.content)
    return repairs


def _summary(broken: list[Problem]) -> str:
    named = "; ".join(map(str, broken[:_PROBLEMS_NAMED]))
    others = len(broken) - _PROBLEMS_NAMED
    return f"{named}; and {others} more" if others > 0 else named


def _last_written_batch(settings: "Settings", of_job: "Sequence[Generation]") -> int | None:
    """The newest batch of the job that one of the live tables has."""
    return max((batch for g in of_job if (batch := _last_batch_in_table(settings, g)) is not None), default=None)


def _last_batch_in_table(settings: "Settings", generation: "Generation") -> int | None:
    if not lake.exists(settings, generation.table):
        return None
    for commit in lake.commits(settings, generation.table):
        if commit.record.get("writer") == "live" and commit.record.get("generation") == generation.number:
            return int(commit.record["batch_id"])
    return None
