"""The files of a Delta log, read without Spark."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyarrow import fs

from lockstep import lake

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The directory of a table with what was put aside. Delta does not look at names that begin so.
_ASIDE = "_torn"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\..+)?\.parquet")


class LogFiles:
    """The files of a table's Delta log, as they are when this object is made.

    Args:
        listed: whether the directory is read; if not, no file is known by name.
        names: the names of all of them.
        versions: the versions that have a commit file, ascending.
        checkpoints: by version, the names of the files of its checkpoint.
    """

    def __init__(self, settings: "Settings", table: str, *, listed: bool = True) -> None:
        self._filesystem, self._table = fs.FileSystem.from_uri(lake.path(settings, table))
        self._root = f"{self._table}/_delta_log"
        selector = fs.FileSelector(self._root, allow_not_found=True)
        infos = self._filesystem.get_file_info(selector) if listed else ()
        self.names = {info.base_name for info in infos if info.type == fs.FileType.File}
        self.versions = sorted(int(found[1]) for name in self.names if (found := _COMMIT.fullmatch(name)))
        self.checkpoints: dict[int, list[str]] = {}
        for name in sorted(self.names):
            if found := _CHECKPOINT.fullmatch(name):
                self.checkpoints.setdefault(int(found[1]), []).append(name)

    def read(self, name: str) -> bytes:
        """The content of a file."""
        with self._filesystem.open_input_stream(f"{self._root}/{name}", compression=None) as stream:
            return bytes(stream.read())

    def commit(self, version: int) -> bytes:
        """The content of a commit file."""
        return self.read(f"{version:020d}.json")

    def parquet(self, name: str) -> Any:
        """A Parquet file of a checkpoint, opened."""
        return pq.ParquetFile(self._filesystem.open_input_file(f"{self._root}/{name}"))

    def has_data(self, path: str, size: int) -> bool:
        """Whether a data file of the table is there, in full length."""
        info = self._filesystem.get_file_info(f"{self._table}/{path}")
        return bool(info.type == fs.FileType.File and info.size == size)

    def put_aside_versions(self) -> list[int]:
        """The versions whose commits were put aside, ascending."""
        infos = self._filesystem.get_file_info(fs.FileSelector(f"{self._table}/{_ASIDE}", allow_not_found=True))
        found = (_COMMIT.fullmatch(info.base_name.partition("-")[2]) for info in infos)
        return sorted({int(match[1]) for match in found if match})

    def put_aside(self, name: str) -> str:
        """Move a file out of the log, to where Delta does not look; its new place."""
        return self._move_aside(f"_delta_log/{name}", name)

    def put_data_aside(self, path: str) -> str | None:
        """Move a data file out of the table, to where Delta does not look; its new place, None if it is not there."""
        if self._filesystem.get_file_info(f"{self._table}/{path}").type != fs.FileType.File:
            return None
        return self._move_aside(path, path.replace("/", "-"))

    def _move_aside(self, path: str, name: str) -> str:
        aside = f"{self._table}/{_ASIDE}"
        self._filesystem.create_dir(aside, recursive=True)
        place = f"{aside}/{datetime.now(UTC):%Y%m%dT%H%M%S}-{name}"
        self._filesystem.move(f"{self._table}/{path}", place)
        return place
