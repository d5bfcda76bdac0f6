"""The checksums that Hadoop and Spark write beside a checkpoint's files: the first witnesses, as old as the files themselves."""

import io
import json
import struct
import zipfile
import zlib
from typing import Any

from lockstep.live.checkpoint import Checkpoint

_MAGIC = b"crc\x00"


def fits(checkpoint: Checkpoint, path: str, content: bytes) -> bool:
    """Whether a file's bytes are those that its checksums were made of; also where it has none, as on an object store."""
    return not _differs_from_hadoops(checkpoint, path, content) and not _differs_from_sparks(checkpoint, path, content)


def _differs_from_hadoops(checkpoint: Checkpoint, path: str, content: bytes) -> bool:
    folder, _, name = path.rpartition("/")
    crc = _optional(checkpoint, f"{folder}/.{name}.crc" if folder else f".{name}.crc")
    return crc is not None and crc != hadoop_crc(content)


def _differs_from_sparks(checkpoint: Checkpoint, path: str, content: bytes) -> bool:
    if path.endswith(".zip"):
        return not _whole_zip(content)
    described = _optional(checkpoint, f"{path}.crc")
    if described is None:
        return False
    try:
        size = json.loads(described)["mainFileSize"]
    except (ValueError, KeyError):
        return True
    return bool(size != len(content))


def hadoop_crc(content: bytes, chunk: int = 512) -> bytes:
    """What Hadoop's local file system writes into ``.<name>.crc``: a CRC32 for each chunk."""
    chunks = (content[i : i + chunk] for i in range(0, len(content), chunk))
    return _MAGIC + struct.pack(">i", chunk) + b"".join(struct.pack(">I", zlib.crc32(part)) for part in chunks)


def snapshot(content: bytes) -> dict[str, Any]:
    """The description in a RocksDB snapshot: ``sstFiles`` (with ``dfsSstFileName`` and ``sizeBytes``) and ``numKeys``.

    Raises:
        ValueError: it has none.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            text = archive.read("metadata").decode()
    except (zipfile.BadZipFile, KeyError) as error:
        raise ValueError(f"it is no snapshot of RocksDB ({error})") from error
    found: dict[str, Any] = json.loads(text.partition("\n")[2])
    return found


def _whole_zip(content: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, zlib.error):
        return False


def _optional(checkpoint: Checkpoint, path: str) -> bytes | None:
    try:
        return checkpoint.read(path)
    except FileNotFoundError:
        return None
