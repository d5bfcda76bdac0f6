"""What each checkpoint's files were when they were new: sizes and SHA-256, in the control database, away from the lake.

The live service writes it every few seconds. The small files that cannot be computed again (the logs, the ids, the schemas) are
kept whole, so that they can be put back.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg2.extras import execute_values

from lockstep.checkpoints.checksums import fits
from lockstep.control.database import control
from lockstep.live.checkpoint import Checkpoint, number_of

if TYPE_CHECKING:
    from lockstep.live.generations import Generation
    from lockstep.settings import Settings

_KEPT_WHOLE = 64 << 10


@dataclass(frozen=True)
class FileDigest:
    """What a file was: bytes, SHA-256 (hex), and its content where it is kept."""

    size: int
    sha256: str
    body: bytes | None = None

    @classmethod
    def of(cls, path: str, content: bytes) -> "FileDigest":
        """What a file is now."""
        small = path.startswith(("offsets/", "commits/")) or (number_of(path) is None and "/SSTs/" not in path)
        kept = content if small and len(content) <= _KEPT_WHOLE else None
        return cls(len(content), hashlib.sha256(content).hexdigest(), kept)


def known(settings: "Settings", generation: "Generation") -> dict[str, FileDigest]:
    """What the journal has of a generation's checkpoint, by path."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT path, size, sha256, body FROM checkpoint_files WHERE query = %s AND generation = %s",
            (generation.query, generation.number),
        )
        return {path: FileDigest(size, sha256, body and bytes(body)) for path, size, sha256, body in cursor.fetchall()}


def update(settings: "Settings", generation: "Generation", seen: Mapping[str, FileDigest]) -> dict[str, FileDigest]:
    """Write down the files of done batches that are new since ``seen``, and forget those that Spark has removed since.

    A file that does not fit its own checksum is not written down, so that a verification finds it.

    Returns:
        What the journal has now.
    """
    checkpoint = Checkpoint(generation.location(settings))
    files, last = checkpoint.files(), checkpoint.last()
    done = [path for path in files if last is not None and (number_of(path) or 0) <= last and not path.endswith(".crc")]
    new = {}
    for path in done:
        if path not in seen:
            content = checkpoint.read(path)
            if fits(checkpoint, path, content):
                new[path] = FileDigest.of(path, content)
    oldest = min((number_of(path) or 0 for path in done if path.startswith("offsets/")), default=0)
    gone = [
        p
        for p in seen
        if p not in files and (number_of(p) is not None or "/SSTs/" in p) and (number_of(p) or 0) < oldest
    ]
    _write(settings, generation, new, gone)
    return {path: one for path, one in (dict(seen) | new).items() if path not in set(gone)}


def forget_before(settings: "Settings", generation: "Generation") -> None:
    """Forget the files of the query's earlier generations, which nobody resumes any more."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM checkpoint_files WHERE query = %s AND generation < %s", (generation.query, generation.number)
        )


def _write(settings: "Settings", generation: "Generation", new: Mapping[str, FileDigest], gone: Iterable[str]) -> None:
    gone = list(gone)
    if not new and not gone:
        return
    key = (generation.query, generation.number)
    rows = [(*key, path, one.size, one.sha256, one.body) for path, one in new.items()]
    with control(settings) as connection, connection.cursor() as cursor:
        if rows:
            execute_values(
                cursor,
                "INSERT INTO checkpoint_files (query, generation, path, size, sha256, body) VALUES %s ON CONFLICT DO NOTHING",
                rows,
            )
        cursor.execute(
            "DELETE FROM checkpoint_files WHERE query = %s AND generation = %s AND path = ANY(%s)", (*key, gone)
        )
