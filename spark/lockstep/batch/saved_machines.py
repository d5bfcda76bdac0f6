"""The machines of a keyed view between two roll-ups, so that the next one goes on from them and reads no history.

They are in a file that the newest entry of gold's ledger names. If it names none, or one that does not fit any more, the machines
are computed from silver again. So a file may be lost at any time, and one that none of the last entries names is removed by the
next roll-up.
"""

import uuid
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Collection

    from lockstep.settings import Settings

# ``_timer`` (microseconds, UTC): when the machine wants to act although no event comes. ``_machine``: see
# :class:`~lockstep.definition.machine.Machine`. The other rows of its key are the buckets of its map state, with their numbers.
SCHEMA = pa.schema([("_key", pa.string()), ("_bucket", pa.int32()), ("_timer", pa.int64()), ("_machine", pa.string())])


def location(settings: "Settings", view: str, below: str = "_machines") -> str:
    """Where the machines of a view are saved: ``<lake>/<below>/<view>``."""
    return f"{settings.lake.rstrip('/')}/{below}/{view}"


class SavedMachines:
    """The files of a view. Those of its roll-ups are in ``<lake>/_machines/<view>``: the lease of its gold table must be held.

    Args:
        below: the directory of the lake, if it is another one.
    """

    def __init__(self, settings: "Settings", view: str, below: str = "_machines") -> None:
        self._filesystem, self._root = fs.FileSystem.from_uri(location(settings, view, below))

    def load(self, name: str) -> pa.Table | None:
        """The machines of a file; None: it is lost."""
        try:
            return pq.read_table(f"{self._root}/{name}.parquet", filesystem=self._filesystem, schema=SCHEMA)
        except FileNotFoundError:
            return None

    def save(self, machines: pa.Table) -> str:
        """Write the machines to a new file; its name."""
        name = uuid.uuid4().hex
        self._filesystem.create_dir(self._root, recursive=True)
        pq.write_table(machines, f"{self._root}/{name}.parquet", filesystem=self._filesystem, compression="zstd")
        return name

    def names(self) -> list[str]:
        """The files that there are."""
        files = self._filesystem.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
        return [found.base_name.removesuffix(".parquet") for found in files]

    def remove_all_but(self, names: "Collection[str | None]") -> None:
        """Remove the other files."""
        for other in {*self.names()} - {*names}:
            self._filesystem.delete_file(f"{self._root}/{other}.parquet")
