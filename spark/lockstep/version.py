"""Which code wrote a row: the release, and a digest of the package's own sources."""

import hashlib
from functools import cache
from pathlib import Path

from lockstep import __version__


@cache
def code_version() -> str:
    """``<release>+<12 hex digits of the SHA-256 over the package's .py files>``; the same wherever the same code runs."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(root.rglob("*.py")):
        digest.update(str(source.relative_to(root)).encode())
        digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
