"""Remove the checkpoints of generations that are over, and what trials have left."""

import time
from typing import TYPE_CHECKING

from pyarrow import fs

from lockstep import lake
from lockstep.checkpoints import journal
from lockstep.live import generations

if TYPE_CHECKING:
    from lockstep.settings import Settings

_HOUR = 3600
_TRIALS = "_probes"


def tidy(settings: "Settings") -> list[str]:
    """Remove what nobody has written to for ``retain_hours``, of queries that are in a later generation.

    Returns:
        ``<query>/<generation>`` of what was removed.
    """
    filesystem, root = fs.FileSystem.from_uri(lake.checkpoint(settings, _TRIALS, 0).rpartition(f"/{_TRIALS}/")[0])
    limit = time.time() - settings.retain_hours * _HOUR
    current = generations.all_current(settings)
    removed = []
    for query in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        for one in filesystem.get_file_info(fs.FileSelector(query.path, allow_not_found=True)):
            over = query.base_name == _TRIALS or (
                query.base_name in current
                and one.base_name.isdigit()
                and int(one.base_name) < current[query.base_name].number
            )
            if over and _last_written(filesystem, one) < limit:
                filesystem.delete_dir(one.path)
                removed.append(f"{query.base_name}/{one.base_name}")
    for generation in current.values():
        journal.forget_before(settings, generation)
    return removed


def _last_written(filesystem: fs.FileSystem, directory: fs.FileInfo) -> float:
    found = filesystem.get_file_info(fs.FileSelector(directory.path, recursive=True))
    return max((info.mtime.timestamp() for info in [directory, *found] if info.mtime), default=time.time())
