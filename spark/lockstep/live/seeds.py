"""Where a live query of a keyed view begins that goes on from the batch layer: at gold's rows, and with gold's machines.

The machines are copied, because the batch layer keeps its own for a few roll-ups only. The copy is needed until the query's first
micro-batch is committed: Spark takes it as the initial state of that batch.
"""

import uuid
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from lockstep import lake
from lockstep.errors import LockstepError

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


def save(settings: "Settings", machines: pa.Table) -> str:
    """Copy machines (:data:`~lockstep.batch.saved_machines.SCHEMA`); the name of the copy."""
    name = uuid.uuid4().hex
    filesystem, folder = fs.FileSystem.from_uri(_folder(settings, name))
    filesystem.create_dir(folder, recursive=True)
    pq.write_table(machines, f"{folder}/machines.parquet", filesystem=filesystem, compression="zstd")
    return name


def load(settings: "Settings", name: str) -> pa.Table:
    """The machines of a copy.

    Raises:
        LockstepError: it is gone.
    """
    filesystem, folder = fs.FileSystem.from_uri(_folder(settings, name))
    try:
        return pq.read_table(f"{folder}/machines.parquet", filesystem=filesystem)
    except FileNotFoundError as error:
        raise LockstepError(
            f"The machines with which the query was to begin are gone: {folder}. Reset it again: it waited longer than "
            "LOCKSTEP_RETAIN_HOURS."
        ) from error


def _folder(settings: "Settings", name: str) -> str:
    return f"{lake.checkpoint(settings, SEEDS, 0).rpartition('/')[0]}/{name}"
