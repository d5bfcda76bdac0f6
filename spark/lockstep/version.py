"""The version of the code that writes rows: the release, and a digest of the sources of the platform and of the project."""

import hashlib
import json
from functools import cache
from pathlib import Path

from lockstep import __version__, project, suite_files
from lockstep import settings as configuration

# In a wheel these folders lie below the platform's modules, in a checkout beside them: the digest is the same for both.
_BESIDE = ("dags", "infra")


@cache
def code_version() -> str:
    """``<release>+<12 hex digits of a SHA-256>``; the same wherever the same code runs.

    The digest is over the .py files, the schemas of contracts, and the expectations that put rows aside: they decide which rows
    are written.
    """
    digest = hashlib.sha256()
    for root, left_out in ((Path(__file__).parent, _BESIDE), (project.folder("."), ())):
        for source in sorted(file for ending in (".py", *project.SCHEMA_FILES) for file in root.rglob(f"*{ending}")):
            if source.relative_to(root).parts[0] in left_out:
                continue
            digest.update(str(source.relative_to(root)).encode())
            digest.update(source.read_bytes())
    for table, expectations in _quarantining().items():
        digest.update(json.dumps([table, expectations], sort_keys=True).encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _quarantining() -> dict[str, object]:
    """By silver table, its expectations that put rows aside. A suite that cannot be read stops its stream, and has none here."""
    settings, found = configuration.load(), {}
    for file in sorted((suite_files.root(settings) / "silver").glob("*.json")):
        try:
            found[file.stem] = suite_files.quarantining(settings, f"silver.{file.stem}")
        except suite_files.SuiteMissing:
            continue
    return {table: expectations for table, expectations in found.items() if expectations}
