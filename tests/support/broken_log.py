"""Take the end of a partition's log away from a broker that is stopped, as a power cut does that nothing was synced before."""

import struct
from pathlib import Path

from lockstep.settings import Settings

# The head of a record batch: its first offset, and the number of bytes after these twelve.
_HEAD = struct.Struct(">qi")


def cut_log(settings: Settings, topic: str, partition: int, offset: int) -> None:
    """Cut the log before the batch that begins with the offset, and have the broker recover what is left."""
    directory = settings.home / "kafka" / f"{topic}-{partition}"
    (segment,) = directory.glob("*.log")
    segment.write_bytes(_before(segment.read_bytes(), offset))
    for derived in (*directory.glob("*.index"), *directory.glob("*.timeindex"), *directory.glob("*.snapshot")):
        derived.unlink()
    # Without this file the broker knows that it was not stopped in order.
    Path(settings.home / "kafka" / ".kafka_cleanshutdown").unlink(missing_ok=True)


def _before(content: bytes, offset: int) -> bytes:
    at = 0
    while at < len(content):
        first, length = _HEAD.unpack_from(content, at)
        if first >= offset:
            return content[:at]
        at += _HEAD.size + length
    raise AssertionError(f"the log has no batch that begins with offset {offset}")
