"""Read the files of a Spark checkpoint: which batches are finished, where each one ended, and which files a restart needs.

Spark writes ``offsets/N`` before batch N runs; it says where the batch ends. Spark writes ``commits/N`` when batch N is finished.
``state/<operator>/<partition>/`` holds version N + 1 of the state after batch N: as a snapshot (``.zip``), or as a changelog
since the version before. This module writes nothing.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

_STATE_FILE = re.compile(r"(state/\d+/\d+(?:/[^_/][^/]*)?)/(\d+)(?:_[0-9a-f-]+)?\.(changelog|delta|zip|snapshot)")
_LOG_FILE = re.compile(r"(offsets|commits)/(\d+)")
_SNAPSHOT_SUFFIXES = ("zip", "snapshot")
VERSION = "v1"
# The setting that decides the number of state partitions, among those that Spark keeps in the checkpoint.
STATE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Batch:
    """One entry of the offset log.

    Args:
        sources: what the log says of each source, in the query's order; None for a source that had no data yet.
        watermark: the batch's event-time watermark, milliseconds since the epoch (UTC); 0 before there is one.
        planned_at: when the batch was planned, milliseconds since the epoch (UTC).
        conf: the settings that Spark keeps for the life of the checkpoint.
    """

    number: int
    sources: tuple[Any, ...]
    watermark: int
    planned_at: int
    conf: Mapping[str, str]

    @property
    def offsets(self) -> dict[str, dict[int, int]]:
        """Per Kafka topic and partition, the next offset after this batch."""
        offsets: dict[str, dict[int, int]] = {}
        for topic, ends in (item for source in self.sources if isinstance(source, dict) for item in source.items()):
            # One topic may be several sources: a keyed view reads each partition as a source of its own.
            if isinstance(ends, dict):
                offsets.setdefault(topic, {}).update({int(partition): int(end) for partition, end in ends.items()})
        return offsets


def parse_offsets(number: int, text: str) -> Batch:
    """Parse a file of the offset log: the line ``v1``, a line of metadata, and a line for each source.

    Raises:
        ValueError: the text is not such a file; the message says why.
    """
    version, *lines = text.split("\n")
    if version != VERSION or len(lines) < 2:
        raise ValueError(
            f"it begins with {version[:20]!r} and has {len(lines) + 1} lines, not {VERSION!r} and three or more"
        )
    metadata, *sources = ({} if line == "-" else json.loads(line) for line in lines)
    if not isinstance(metadata, dict):
        raise ValueError("its second line is not an object")
    return Batch(
        number=number,
        sources=tuple(sources),
        watermark=int(metadata.get("batchWatermarkMs", 0)),
        planned_at=int(metadata.get("batchTimestampMs", 0)),
        conf=metadata.get("conf", {}),
    )


def parse_commit(text: str) -> int:
    """Parse a file of the commit log, and return the watermark (milliseconds, UTC) that it gives to the next batch.

    Raises:
        ValueError: the text is not such a file; the message says why.
    """
    version, _, body = text.partition("\n")
    commit = json.loads(body) if version == VERSION else None
    if not isinstance(commit, dict):
        raise ValueError(f"it begins with {version[:20]!r}, not {VERSION!r} and an object")
    return int(commit.get("nextBatchWatermarkMs", 0))


def parse_operator(text: str) -> dict[str, Any]:
    """Parse a stateful operator's metadata: ``operatorInfo`` (number, name) and ``stateStoreInfo`` (name, partitions).

    Raises:
        ValueError: the text is not such a file.
    """
    metadata = json.loads(text.partition("\n")[2])
    if not isinstance(metadata, dict) or not {"operatorInfo", "stateStoreInfo"} <= metadata.keys():
        raise ValueError("it does not describe an operator")
    return metadata


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint at a location (a path or URI). The location need not exist."""

    location: str

    def open(self) -> tuple[fs.FileSystem, str]:
        """The file system, and the path of the checkpoint on it."""
        filesystem, root = fs.FileSystem.from_uri(self.location)
        return filesystem, root

    def files(self) -> dict[str, int]:
        """The size in bytes of each file, by path below the checkpoint, without hidden files (checksums, unfinished writes)."""
        filesystem, root = self.open()
        infos = filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        sizes = {info.path[len(root) + 1 :]: info.size for info in infos if info.type == fs.FileType.File}
        return {path: size for path, size in sizes.items() if not path.rpartition("/")[2].startswith(".")}

    def read(self, path: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError if it is missing."""
        filesystem, root = self.open()
        with filesystem.open_input_stream(f"{root}/{path}", compression=None) as stream:
            return bytes(stream.read())

    def id(self) -> str | None:
        """The id of the query that the checkpoint belongs to; None before the query has started."""
        try:
            return str(json.loads(self.read("metadata"))["id"])
        except FileNotFoundError:
            return None

    def last_batch(self) -> int | None:
        """The number of the last finished batch, or None."""
        filesystem, root = self.open()
        infos = filesystem.get_file_info(fs.FileSelector(f"{root}/commits", allow_not_found=True))
        return max((int(info.base_name) for info in infos if info.base_name.isdigit()), default=None)

    def batch(self, number: int) -> Batch:
        """The offset log's entry of a batch."""
        return parse_offsets(number, self.read(f"offsets/{number}").decode())

    def first_planned(self) -> dict[str, dict[int, int]]:
        """Per topic and partition, where the first batch ends, finished or not; empty if it is not planned, or long ago."""
        try:
            return self.batch(0).offsets
        except FileNotFoundError:
            return {}

    def position(self) -> dict[str, dict[int, int]]:
        """Per topic and partition, the next offset after the last finished batch; empty before the first one."""
        last = self.last_batch()
        return {} if last is None else self.batch(last).offsets


def batch_numbers(files: Iterable[str], log: str) -> list[int]:
    """The batches that have an entry in a log (``offsets`` or ``commits``), sorted."""
    matches = (_LOG_FILE.fullmatch(path) for path in files)
    return sorted(int(match[2]) for match in matches if match and match[1] == log)


def batch_of(path: str) -> int | None:
    """The number of the batch that wrote a file; None for a file that stays the same for the checkpoint's life."""
    if match := _LOG_FILE.fullmatch(path):
        return int(match[2])
    if match := _STATE_FILE.fullmatch(path):
        return int(match[2]) - 1
    return None


def store_directories(operators: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The directories, below the checkpoint, of all state stores that the operators' metadata name.

    Args:
        operators: by operator number, its metadata (:func:`parse_operator`).
    """
    return [
        f"state/{operator}/{partition}" + ("" if store["storeName"] == "default" else f"/{store['storeName']}")
        for operator, metadata in sorted(operators.items())
        for store in metadata["stateStoreInfo"]
        for partition in range(store["numPartitions"])
    ]


def state_files(files: Iterable[str], directory: str, version: int) -> tuple[list[str], list[str]]:
    """The files from which a state store is loaded at a version: the newest snapshot up to it, and every changelog since.

    Returns:
        The files that exist, and the paths of those that are missing.
    """
    matches = [match for path in files if (match := _STATE_FILE.fullmatch(path)) and match[1] == directory]
    snapshots = {int(m[2]): m[0] for m in matches if m[3] in _SNAPSHOT_SUFFIXES and int(m[2]) <= version}
    changelogs = {int(m[2]): m[0] for m in matches if m[3] not in _SNAPSHOT_SUFFIXES}
    base = max(snapshots, default=0)
    versions = range(base + 1, version + 1)
    present = [snapshots[base]] if snapshots else []
    present += [changelogs[n] for n in versions if n in changelogs]
    return present, [f"{directory}/{n}.changelog" for n in versions if n not in changelogs]
