"""The version of the code that writes rows: the release, and a digest of the sources of the platform and of the project."""

import hashlib
from functools import cache
from pathlib import Path

from lockstep import __version__, project


@cache
def code_version() -> str:
    """``<release>+<12 hex digits of a SHA-256 over the .py files>``; the same wherever the same code runs."""
    digest = hashlib.sha256()
    for root in (Path(__file__).parent, project.folder(".")):
        for source in sorted(root.rglob("*.py")):
            digest.update(str(source.relative_to(root)).encode())
            digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
