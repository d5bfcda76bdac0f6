"""Where dbt writes: ``<home>/dbt/<target>``. Production's has the newest of each artefact, for ``--state`` and ``--defer``."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import lake

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The target that writes what everybody reads.
PRODUCTION = "prod"
# dbt's own names. The pages of `docs generate --static` are one file.
MANIFEST, PAGES, COMPILED = "manifest.json", "static_index.html", "compiled"
KEPT = (MANIFEST, "run_results.json", "sources.json", "catalog.json", PAGES)


def directory(settings: "Settings", target: str = PRODUCTION) -> Path:
    """The directory of a target's artefacts, its log and what it has parsed and compiled."""
    return settings.home / "dbt" / target


def keep(settings: "Settings", written: Path) -> None:
    """Take over the artefacts that a run of production has written. Each file is replaced as a whole.

    They name the marts as readers do: a developer's models that read production's read what is published. The compiled
    statements are kept as they ran.
    """
    for name in KEPT:
        if (written / name).exists():
            content = (written / name).read_bytes()
            replace(directory(settings) / name, content.replace(lake.BUILT.encode(), lake.MARTS.encode()))
    if written != directory(settings):
        for file in (written / COMPILED).rglob("*.sql"):
            replace(directory(settings) / file.relative_to(written), file.read_bytes())


def compiled(settings: "Settings", node: Any) -> str:
    """The file of a model's or a test's newest statement of production, once the run has ended."""
    path: str = node.get_target_write_path(str(directory(settings)), COMPILED)
    return path


def replace(file: Path, content: bytes) -> None:
    """Write the file as a whole: another task may read it, or write the same, at this moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
        temporary.write(content)
    Path(temporary.name).replace(file)
