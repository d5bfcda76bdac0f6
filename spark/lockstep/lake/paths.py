"""Where tables and checkpoints are in the lake."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.settings import Settings

LAYERS = ("bronze", "silver", "quarantine", "gold", "live", "late", "ops", "serving", "marts", "staging", "shadow")


def path(settings: "Settings", table: str) -> str:
    """Where ``layer.name`` is: ``<lake>/<layer>/<name>``."""
    layer, _, name = table.partition(".")
    if layer not in LAYERS or not name:
        raise ValueError(f"{table!r} is not a table of the lake: it must be <layer>.<name>, with a layer of {LAYERS}")
    return f"{settings.lake.rstrip('/')}/{layer}/{name}"


def catalog_name(settings: "Settings", table: str) -> str:
    """The name of ``layer.name`` in Spark's catalog, which production and its environments share."""
    return f"{settings.schema_prefix}{table}"


def checkpoint(settings: "Settings", query: str, generation: int) -> str:
    """Where a live query keeps its offsets and state: ``<lake>/_checkpoints/<query>/<generation>``."""
    return f"{settings.lake.rstrip('/')}/_checkpoints/{query}/{generation}"
