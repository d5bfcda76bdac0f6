"""A Spark checkpoint as it lies in the lake: which batches are done, where each ended, which files a restart needs. Reads only.

``offsets/N`` says where batch N ends, written before it runs; ``commits/N`` that it is done; ``state/<operator>/<partition>/``
holds version N + 1 of the state as a snapshot (``.zip``) and the changelogs since.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyarrow import fs

_STATE = re.compile(r"(state/\d+/\d+(?:/[^_/][^/]*)?)/(\d+)(?:_[0-9a-f-]+)?\.(changelog|delta|zip|snapshot)")
_LOG = re.compile(r"(offsets|commits)/(\d+)")
_WHOLE = ("zip", "snapshot")
VERSION = "v1"


@dataclass(frozen=True)
class Batch:
    """One entry of the offset log.

    Args:
        sources: what the log says of each source, in the query's order; None for a source that had nothing yet.
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
        found: dict[str, dict[int, int]] = {}
        for topic, ends in (item for source in self.sources if isinstance(source, dict) for item in source.items()):
            # One topic may be several sources: a keyed view reads each partition by itself.
            if isinstance(ends, dict):
                found.setdefault(topic, {}).update({int(partition): int(offset) for partition, offset in ends.items()})
        return found


def parse_offsets(number: int, text: str) -> Batch:
    """Read a file of the offset log: ``v1``, a line of metadata, and a line for each source.

    Raises:
        ValueError: it is not such a file, with the reason.
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
    """The watermark (milliseconds, UTC) that a file of the commit log gives to the next batch.

    Raises:
        ValueError: it is not such a file, with the reason.
    """
    version, _, body = text.partition("\n")
    found = json.loads(body) if version == VERSION else None
    if not isinstance(found, dict):
        raise ValueError(f"it begins with {version[:20]!r}, not {VERSION!r} and an object")
    return int(found.get("nextBatchWatermarkMs", 0))


def parse_operator(text: str) -> dict[str, Any]:
    """A stateful operator's own description: ``operatorInfo`` (number and name) and ``stateStoreInfo`` (name and partitions).

    Raises:
        ValueError: it is not such a file.
    """
    found = json.loads(text.partition("\n")[2])
    if not isinstance(found, dict) or not {"operatorInfo", "stateStoreInfo"} <= found.keys():
        raise ValueError("it does not describe an operator")
    return found


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint at a location (a path or URI); it need not exist."""

    location: str

    def open(self) -> tuple[fs.FileSystem, str]:
        """The file system, and the checkpoint's root on it."""
        filesystem, root = fs.FileSystem.from_uri(self.location)
        return filesystem, root

    def files(self) -> dict[str, int]:
        """All files by path below the root, with their sizes in bytes; hidden ones (checksums, unfinished writes) left out."""
        filesystem, root = self.open()
        found = filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
        files = {info.path[len(root) + 1 :]: info.size for info in found if info.type == fs.FileType.File}
        return {path: size for path, size in files.items() if not path.rpartition("/")[2].startswith(".")}

    def read(self, path: str) -> bytes:
        """The bytes of a file; FileNotFoundError where it is missing."""
        filesystem, root = self.open()
        with filesystem.open_input_stream(f"{root}/{path}", compression=None) as stream:
            return bytes(stream.read())

    def id(self) -> str | None:
        """The id of the query that it belongs to; None before that has begun."""
        try:
            return str(json.loads(self.read("metadata"))["id"])
        except FileNotFoundError:
            return None

    def last(self) -> int | None:
        """The last batch that is done, or None."""
        filesystem, root = self.open()
        found = filesystem.get_file_info(fs.FileSelector(f"{root}/commits", allow_not_found=True))
        return max((int(info.base_name) for info in found if info.base_name.isdigit()), default=None)

    def batch(self, number: int) -> Batch:
        """An entry of the offset log."""
        return parse_offsets(number, self.read(f"offsets/{number}").decode())

    def position(self) -> dict[str, dict[int, int]]:
        """Per topic and partition, the next offset after the last batch that is done; empty before that."""
        last = self.last()
        return {} if last is None else self.batch(last).offsets


def numbers(files: Iterable[str], log: str) -> list[int]:
    """The batches of a log (``offsets`` or ``commits``), sorted."""
    parts = (_LOG.fullmatch(path) for path in files)
    return sorted(int(found[2]) for found in parts if found and found[1] == log)


def number_of(path: str) -> int | None:
    """The batch that wrote a file, or None for files that stay the same for the checkpoint's life."""
    if found := _LOG.fullmatch(path):
        return int(found[2])
    if found := _STATE.fullmatch(path):
        return int(found[2]) - 1
    return None


def stores(operators: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """The directories of all state stores that the operators' descriptions name, below the checkpoint."""
    return [
        f"state/{operator}/{partition}" + ("" if store["storeName"] == "default" else f"/{store['storeName']}")
        for operator, described in sorted(operators.items())
        for store in described["stateStoreInfo"]
        for partition in range(store["numPartitions"])
    ]


def chain(files: Iterable[str], directory: str, version: int) -> tuple[list[str], list[str]]:
    """What a state store needs to be at a version: the newest snapshot up to it, and every change since.

    Returns:
        The files that are there, and the paths of those that are not.
    """
    mine = [found for path in files if (found := _STATE.fullmatch(path)) and found[1] == directory]
    whole = {int(found[2]): found[0] for found in mine if found[3] in _WHOLE and int(found[2]) <= version}
    changes = {int(found[2]): found[0] for found in mine if found[3] not in _WHOLE}
    first = max(whole, default=0)
    since = range(first + 1, version + 1)
    present = [whole[first]] if whole else []
    present += [changes[n] for n in since if n in changes]
    return present, [f"{directory}/{n}.changelog" for n in since if n not in changes]
