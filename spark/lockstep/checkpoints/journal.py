"""The journal: size and SHA-256 of every file of a checkpoint when it was new, in the control database, away from the lake.

The live service writes it every few seconds. It also keeps the content of the small files that cannot be computed again (the
logs, the ids, the schemas), so that they can be restored.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from psycopg2.extras import execute_values

from lockstep.checkpoints.checksums import matches_checksums
from lockstep.control.database import control
from lockstep.live.checkpoint import Checkpoint, batch_of

if TYPE_CHECKING:
    from lockstep.live.generation import Job
    from lockstep.settings import Settings

# The files whose content is stored have a few kilobytes. The limit keeps an unexpectedly large one out of the database.
_LARGEST_STORED_BYTES = 64 << 10


@dataclass(frozen=True)
class FileDigest:
    """A file when it was new.

    Args:
        size: in bytes.
        sha256: of its content, hex.
        content: None where the journal does not keep it.
    """

    size: int
    sha256: str
    content: bytes | None = None

    @classmethod
    def of(cls, path: str, content: bytes) -> "FileDigest":
        """The digest of a file that has this content now."""
        is_log_or_constant = path.startswith(("offsets/", "commits/")) or not _is_temporary(path)
        stored = content if is_log_or_constant and len(content) <= _LARGEST_STORED_BYTES else None
        return cls(len(content), hashlib.sha256(content).hexdigest(), stored)


def digests(settings: "Settings", job: "Job") -> dict[str, FileDigest]:
    """The journal of a job's checkpoint, by path."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT path, size, sha256, body FROM checkpoint_files WHERE job = %s AND number = %s",
            (job.name, job.number),
        )
        return {path: FileDigest(size, sha256, body and bytes(body)) for path, size, sha256, body in cursor.fetchall()}


def update(settings: "Settings", job: "Job", known: Mapping[str, FileDigest]) -> dict[str, FileDigest]:
    """Add the files of finished batches that are new since ``known``, and forget files that Spark has removed since.

    A file that does not match its own checksum is not added, so that a verification finds it.

    Returns:
        The journal of the job's checkpoint, by path.
    """
    checkpoint = Checkpoint(job.location(settings))
    files, last = checkpoint.files(), checkpoint.last_batch()
    finished = [
        path for path in files if last is not None and (batch_of(path) or 0) <= last and not path.endswith(".crc")
    ]
    new = {}
    for path in finished:
        if path not in known:
            content = checkpoint.read(path)
            if matches_checksums(checkpoint, path, content):
                new[path] = FileDigest.of(path, content)
    oldest = min((batch_of(path) or 0 for path in finished if path.startswith("offsets/")), default=0)
    removed = {path for path in known if path not in files and _is_temporary(path) and (batch_of(path) or 0) < oldest}
    _write(settings, job, new, removed)
    return {path: digest for path, digest in {**known, **new}.items() if path not in removed}


def _is_temporary(path: str) -> bool:
    """Whether Spark removes the file after some batches."""
    return batch_of(path) is not None or "/SSTs/" in path


def forget(settings: "Settings", job: "Job") -> None:
    """Forget the files of a job that nobody resumes any more."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM checkpoint_files WHERE job = %s AND number = %s", (job.name, job.number))


def _write(settings: "Settings", job: "Job", new: Mapping[str, FileDigest], removed: Collection[str]) -> None:
    if not new and not removed:
        return
    key = (job.name, job.number)
    rows = [(*key, path, digest.size, digest.sha256, digest.content) for path, digest in new.items()]
    with control(settings) as connection, connection.cursor() as cursor:
        if rows:
            execute_values(
                cursor,
                "INSERT INTO checkpoint_files (job, number, path, size, sha256, body) VALUES %s ON CONFLICT DO NOTHING",
                rows,
            )
        cursor.execute(
            "DELETE FROM checkpoint_files WHERE job = %s AND number = %s AND path = ANY(%s)", (*key, [*removed])
        )
