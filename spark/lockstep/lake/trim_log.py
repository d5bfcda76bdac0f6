"""Remove the oldest files of a Delta log. Delta's own clean-up asks nobody whether the records in them are still needed."""

import re
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyarrow import fs

from lockstep.lake.paths import path

if TYPE_CHECKING:
    from lockstep.settings import Settings

# A commit, its checksum, a checkpoint, or what Hadoop keeps beside a file on a local disk.
_OF_VERSION = re.compile(r"\.?(\d{20})\.(.+)")


def trim(settings: "Settings", table: str, until: int, before: datetime) -> int:
    """Remove the files of all versions before the newest checkpoint that is not after version ``until``.

    Every version from that checkpoint on can still be read.

    Args:
        before: only versions that were written before this instant are removed.

    Returns:
        How many files were removed.

    Raises:
        ArrowException: the checkpoint cannot be read. Nothing was removed.
    """
    filesystem, root = fs.FileSystem.from_uri(f"{path(settings, table)}/_delta_log")
    files: dict[int, list[str]] = defaultdict(list)
    checkpoints: dict[int, str] = {}
    for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        if found := _OF_VERSION.fullmatch(info.base_name):
            files[int(found[1])].append(info.path)
            if info.base_name == f"{found[1]}.checkpoint.parquet" and info.mtime < before:
                checkpoints[int(found[1])] = info.path
    first = max((version for version in checkpoints if version <= until), default=0)
    old = [file for version in sorted(files) if version < first for file in files[version]]
    if old:
        pq.read_metadata(checkpoints[first], filesystem=filesystem)
    # The oldest first: what is left after a crash has no hole.
    for file in old:
        filesystem.delete_file(file)
    return len(old)
