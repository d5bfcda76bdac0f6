"""The version of the code that writes rows: the release, and a digest of the sources of the platform and of the project."""

import hashlib
from functools import cache
from pathlib import Path

from lockstep import __version__, project

# In a wheel these folders lie below the platform's modules, in a checkout beside them: the digest is the same for both.
_BESIDE = ("dags", "infra")


@cache
def code_version() -> str:
    """``<release>+<12 hex digits of a SHA-256 over the .py files>``; the same wherever the same code runs."""
    digest = hashlib.sha256()
    for root, left_out in ((Path(__file__).parent, _BESIDE), (project.folder("."), ())):
        for source in sorted(root.rglob("*.py")):
            if source.relative_to(root).parts[0] in left_out:
                continue
            digest.update(str(source.relative_to(root)).encode())
            digest.update(source.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
