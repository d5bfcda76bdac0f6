"""How far a layer has seen the log: a window is closed when every partition's log has passed its end plus the lateness.

Both layers' positions are offsets. The ledger of bronze says which time each partition had reached at which offset, so a
position becomes a time without reading a row.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyarrow import fs

from lockstep.ingest import ledger

if TYPE_CHECKING:
    from lockstep.settings import Settings


def reached(entries: Iterable[ledger.Entry], position: Mapping[int, int]) -> datetime | None:
    """The time (UTC) that every partition's log had passed below ``position``, or None while one has nothing to show.

    Conservative: an entry counts only when the position covers all of it.

    Args:
        entries: bronze's ledger, newest first; read no further than needed.
        position: per partition, the next offset that the layer has not seen.
    """
    times: dict[int, int] = {}
    for entry in entries:
        for r in entry.ranges:
            if r.partition not in times and r.partition in entry.reached and r.end <= position.get(r.partition, 0):
                times[r.partition] = entry.reached[r.partition]
        if times.keys() >= position.keys():
            break
    if not position or times.keys() < position.keys():
        return None
    return datetime.fromtimestamp(min(times.values()) / 1000, UTC)


def batch_position(settings: "Settings", table: str) -> dict[int, int]:
    """The position of a table of the batch layer; empty before its first commit."""
    newest = ledger.latest(settings, table)
    return {r.partition: r.end for r in newest.ranges} if newest else {}


def live_position(checkpoint: str, topic: str) -> dict[int, int]:
    """The position of a live query after its last *committed* micro-batch; empty before that.

    From the checkpoint's own files: ``commits/N`` says that batch N is done, ``offsets/N`` where it ended.
    """
    filesystem, root = fs.FileSystem.from_uri(checkpoint)
    done = [int(name) for name in _names(filesystem, f"{root}/commits") if name.isdigit()]
    if not done:
        return {}
    with filesystem.open_input_stream(f"{root}/offsets/{max(done)}") as stream:
        return parse_offsets(stream.read().decode(), topic)


def parse_offsets(text: str, topic: str) -> dict[int, int]:
    """The Kafka offsets of one topic out of a file of Spark's offset log (``v1``, metadata, one JSON line a source)."""
    for line in text.splitlines():
        if re.match(r"\s*\{", line):
            source = json.loads(line)
            if isinstance(source.get(topic), dict):
                return {int(partition): int(offset) for partition, offset in source[topic].items()}
    return {}


def _names(filesystem: fs.FileSystem, directory: str) -> list[str]:
    selector = fs.FileSelector(directory, allow_not_found=True)
    return [info.base_name for info in filesystem.get_file_info(selector)]
