"""Files that are replaced as a whole: a reader sees what was there before or what is there now, and never a part of it."""

import glob
import os
import secrets
from pathlib import Path


def replace(file: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file, or replace the one that is there, in one step. Its folder is made if it is missing.

    The content is written to a draft beside the file, which is then renamed. A writer that fails or is killed leaves the file
    as it was. Several may write it at once: one of their files stays, whole. A reader that has opened the file reads on in the
    old one. The content is on the disk before the file has its name: after a power cut, it is the old one or the new one.

    Args:
        mode: the permissions, less what the process's umask takes away. The draft has them too: what only the owner may read,
            nobody else can read at any moment.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.new")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def remove(file: Path) -> None:
    """Remove a file, and the drafts of it that killed writers have left."""
    file.unlink(missing_ok=True)
    for draft in file.parent.glob(f".{glob.escape(file.name)}.*.new"):
        draft.unlink(missing_ok=True)
