"""Remove the checkpoints of earlier jobs, those that trials have left behind, and machines with which queries have begun."""

import time
from typing import TYPE_CHECKING

from pyarrow import fs

from lockstep import lake
from lockstep.checkpoints import journal
from lockstep.checkpoints.compatible import TRIALS
from lockstep.live import generations
from lockstep.live.seeds import SEEDS

if TYPE_CHECKING:
    from lockstep.settings import Settings

_HOUR = 3600


def tidy(settings: "Settings") -> list[str]:
    """Remove the checkpoints of earlier jobs and of trials, and seeds, that nobody has written to for ``retain_hours``.

    Returns:
        ``<job>/<number>`` of each checkpoint that was removed.
    """
    filesystem, root = fs.FileSystem.from_uri(lake.checkpoint(settings, TRIALS, 0).rpartition(f"/{TRIALS}/")[0])
    limit = time.time() - settings.retain_hours * _HOUR
    earlier = {str(job): job for job in generations.earlier_jobs(settings)}
    removed = []
    for query in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        for checkpoint in filesystem.get_file_info(fs.FileSelector(query.path, allow_not_found=True)):
            name = f"{query.base_name}/{checkpoint.base_name}"
            if (query.base_name in (TRIALS, SEEDS) or name in earlier) and _last_written(
                filesystem, checkpoint
            ) < limit:
                filesystem.delete_dir(checkpoint.path)
                removed.append(name)
    for job in earlier.values():
        journal.forget(settings, job)
    return removed


def _last_written(filesystem: fs.FileSystem, directory: fs.FileInfo) -> float:
    files = filesystem.get_file_info(fs.FileSelector(directory.path, recursive=True))
    return max((info.mtime.timestamp() for info in [directory, *files] if info.mtime), default=time.time())
