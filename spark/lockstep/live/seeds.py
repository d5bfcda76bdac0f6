"""Where a live query of a keyed view begins that goes on from the batch layer: at gold's rows, and with gold's machines.

The machines are copied, because the batch layer keeps its own for a few roll-ups only. The copy is needed until the query's first
micro-batch is committed: Spark takes it as the initial state of that batch.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from lockstep.batch.saved_machines import SavedMachines

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The folder beside the checkpoints.
SEEDS = "_seeds"


@dataclass(frozen=True)
class Seed:
    """A point of the batch layer.

    Args:
        version: of gold.
        until: its machines have processed all events before this instant (UTC), and no later ones.
        copy: of its machines; empty: they are not copied yet.
    """

    version: int
    until: datetime
    copy: str = ""

    def as_json(self) -> dict[str, Any]:
        """For the control database."""
        return asdict(self) | {"until": self.until.isoformat()}

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Self:
        """From the control database."""
        return cls(**found | {"until": datetime.fromisoformat(found["until"]).astimezone(UTC)})


def copies(settings: "Settings", query: str) -> SavedMachines:
    """The copies of machines with which the query of a view has begun, or is to begin."""
    return SavedMachines(settings, query, f"_checkpoints/{SEEDS}")
