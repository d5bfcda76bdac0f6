"""What became of commands, as their log has it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lockstep.commands.aggregate import Aggregate
from lockstep.commands.records import Outcome
from lockstep.commands.topics import committed

if TYPE_CHECKING:
    from lockstep.settings import Settings


def outcomes(settings: "Settings", aggregate: Aggregate[Any, Any, Any]) -> Iterator[Outcome]:
    """The outcome of each command, one partition after another, the oldest first; of one that was sent again, the first."""
    seen: set[str] = set()
    for number in range(aggregate.partitions):
        for record in committed(settings, aggregate.topic("outcomes"), number):
            outcome = Outcome.model_validate_json(record.value)
            if outcome.command_id not in seen:
                seen.add(outcome.command_id)
                yield outcome
