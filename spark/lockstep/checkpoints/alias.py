"""A second path to a checkpoint, for Spark's reader of state stores, which does not find a path with a space.

The reader writes the path as a URI, and then takes the URI for a path: it looks for ``my%20work``. No way to write the path
helps, so the reader gets one through a symbolic link. It must be on the machines of the Spark server and of its executors.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from urllib.parse import quote, urlsplit

# Every Unix has the second, which no setting can move to a directory with a space.
_PLACES = (tempfile.gettempdir(), "/tmp")  # noqa: S108


def readable(location: str) -> str:
    """A path to the checkpoint that the reader can open: the same one, unless a URI would write it in another way."""
    if urlsplit(location).scheme or _is_plain(location):
        return location
    root, separator, rest = location.partition("/_checkpoints/")
    name = hashlib.sha256(root.encode()).hexdigest()[:12]
    place = next(path for path in _PLACES if _is_plain(path))
    directory = Path(place) / f"lockstep-{os.getuid()}-{name}"
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_uid != os.getuid():
        raise PermissionError(f"{directory} belongs to another user: remove it, or set TMPDIR to another directory.")
    link = directory / "lake"
    if not link.is_symlink():
        partial = directory / f"lake.{os.getpid()}"
        partial.symlink_to(root)
        # Two processes may make it at the same time.
        partial.replace(link)
    return f"{link}{separator}{rest}"


def _is_plain(path: str) -> bool:
    return quote(path) == path
