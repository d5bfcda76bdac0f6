"""The checksums that Hadoop and Spark write beside a checkpoint's files. They are as old as the files themselves."""

import io
import json
import struct
import zipfile
import zlib
from typing import Any

from lockstep.live.checkpoint import Checkpoint

# Hadoop's format of a checksum file: this header, the size of a chunk, and a CRC32 for each chunk.
_HADOOP_HEADER = b"crc\x00"
_HADOOP_CHUNK = 512


def matches_checksums(checkpoint: Checkpoint, path: str, content: bytes) -> bool:
    """Whether a file's bytes match its checksums. True for a file that has none, as on an object store."""
    return _matches_hadoop(checkpoint, path, content) and _matches_spark(checkpoint, path, content)


def write_with_checksum(checkpoint: Checkpoint, path: str, content: bytes) -> None:
    """Write a file of a checkpoint; on a local file system, write Hadoop's checksum of it too."""
    filesystem, root = checkpoint.open()
    directory, _, name = f"{root}/{path}".rpartition("/")
    filesystem.create_dir(directory, recursive=True)
    with filesystem.open_output_stream(f"{directory}/{name}", compression=None) as stream:
        stream.write(content)
    if filesystem.type_name == "local":
        with filesystem.open_output_stream(f"{directory}/.{name}.crc", compression=None) as stream:
            stream.write(hadoop_checksum(content))


def hadoop_checksum(content: bytes) -> bytes:
    """What Hadoop's local file system writes into ``.<name>.crc``."""
    chunks = (content[start : start + _HADOOP_CHUNK] for start in range(0, len(content), _HADOOP_CHUNK))
    sums = b"".join(struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
    return _HADOOP_HEADER + struct.pack(">i", _HADOOP_CHUNK) + sums


def snapshot_metadata(content: bytes) -> dict[str, Any]:
    """The metadata of a RocksDB snapshot: ``sstFiles`` (with ``dfsSstFileName`` and ``sizeBytes``) and ``numKeys``.

    Raises:
        ValueError: the content is no snapshot.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            text = archive.read("metadata").decode()
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"it is no snapshot of RocksDB ({error})") from error
    metadata: dict[str, Any] = json.loads(text.partition("\n")[2])
    return metadata


def _matches_hadoop(checkpoint: Checkpoint, path: str, content: bytes) -> bool:
    directory, _, name = path.rpartition("/")
    checksum = _read_if_exists(checkpoint, f"{directory}/.{name}.crc" if directory else f".{name}.crc")
    return checksum is None or checksum == hadoop_checksum(content)


def _matches_spark(checkpoint: Checkpoint, path: str, content: bytes) -> bool:
    if path.endswith(".zip"):
        return _is_whole_zip(content)
    checksum = _read_if_exists(checkpoint, f"{path}.crc")
    if checksum is None:
        return True
    try:
        size = json.loads(checksum)["mainFileSize"]
    except (ValueError, KeyError):
        return False
    return bool(size == len(content))


def _is_whole_zip(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error):
        return False


def _read_if_exists(checkpoint: Checkpoint, path: str) -> bytes | None:
    try:
        return checkpoint.read(path)
    except FileNotFoundError:
        return None
