"""Where dbt writes: ``<home>/dbt/<target>``. Production's has the newest of each artefact, for ``--state`` and ``--defer``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import atomic_files, lake

if TYPE_CHECKING:
    from lockstep.settings import Settings

# The target that writes what everybody reads.
PRODUCTION = "prod"
# dbt's own names. The pages of `docs generate --static` are one file.
MANIFEST, PAGES, COMPILED = "manifest.json", "static_index.html", "compiled"
KEPT = (MANIFEST, "run_results.json", "sources.json", "catalog.json", PAGES)
# Only for their owner: what Spark says of a statement that failed may name values of rows.
MODE = 0o600


def directory(settings: "Settings", target: str = PRODUCTION) -> Path:
    """The directory of a target's artefacts, its log and what it has parsed and compiled."""
    return settings.home / "dbt" / target


def keep(settings: "Settings", written: Path) -> None:
    """Take over the artefacts that a run of production has written.

    Each file is replaced as a whole: another task may read it, or write the same, at this moment. They name the marts as readers
    do: a developer's models that read production's read what is published. The compiled statements are kept as they ran.
    """
    for name in KEPT:
        if (written / name).exists():
            content = (written / name).read_bytes()
            content = content.replace(lake.BUILT.encode(), lake.MARTS.encode())
            atomic_files.replace(directory(settings) / name, content, MODE)
    if written != directory(settings):
        for file in (written / COMPILED).rglob("*.sql"):
            atomic_files.replace(directory(settings) / file.relative_to(written), file.read_bytes(), MODE)


def compiled(settings: "Settings", node: Any) -> str:
    """The file of a model's or a test's newest statement of production, once the run has ended."""
    path: str = node.get_target_write_path(str(directory(settings)), COMPILED)
    return path
