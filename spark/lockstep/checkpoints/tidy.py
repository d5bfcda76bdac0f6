"""Remove the checkpoints of earlier generations, and those that trials have left behind."""

import time
from typing import TYPE_CHECKING

from pyarrow import fs

from lockstep import lake
from lockstep.checkpoints import journal
from lockstep.checkpoints.compatible import TRIALS
from lockstep.live import generations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lockstep.live.generations import Generation
    from lockstep.settings import Settings

_HOUR = 3600


def tidy(settings: "Settings") -> list[str]:
    """Remove the checkpoints of earlier generations and of trials that nobody has written to for ``retain_hours``.

    Returns:
        ``<query>/<generation>`` of each checkpoint that was removed.
    """
    filesystem, root = fs.FileSystem.from_uri(lake.checkpoint(settings, TRIALS, 0).rpartition(f"/{TRIALS}/")[0])
    limit = time.time() - settings.retain_hours * _HOUR
    current = generations.all_current(settings)
    removed = []
    for query in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        for checkpoint in filesystem.get_file_info(fs.FileSelector(query.path, allow_not_found=True)):
            unused = _is_unused(query.base_name, checkpoint.base_name, current)
            if unused and _last_written(filesystem, checkpoint) < limit:
                filesystem.delete_dir(checkpoint.path)
                removed.append(f"{query.base_name}/{checkpoint.base_name}")
    for generation in current.values():
        journal.forget_before(settings, generation)
    return removed


def _is_unused(query: str, generation: str, current: "Mapping[str, Generation]") -> bool:
    """Whether a directory is of a trial, or of a generation before the query's current one."""
    if query == TRIALS:
        return True
    return query in current and generation.isdigit() and int(generation) < current[query].number


def _last_written(filesystem: fs.FileSystem, directory: fs.FileInfo) -> float:
    files = filesystem.get_file_info(fs.FileSelector(directory.path, recursive=True))
    return max((info.mtime.timestamp() for info in [directory, *files] if info.mtime), default=time.time())
