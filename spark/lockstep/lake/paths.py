"""Where tables and checkpoints are in the lake."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Of a mart, ``marts.<name>`` is a view at the version that readers may see. dbt builds the table under the name of this schema.
MARTS, BUILT = "marts", "marts_built"
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


def table_name(settings: "Settings", table: str) -> str:
    """The name in Spark's catalog of the table itself: of a mart it is another than that of the view which readers read."""
    layer, _, name = table.partition(".")
    return catalog_name(settings, f"{BUILT}.{name}" if layer == MARTS else table)


def checkpoint(settings: "Settings", query: str, generation: int) -> str:
    """Where a live query keeps its offsets and state: ``<lake>/_checkpoints/<query>/<generation>``."""
    return f"{settings.lake.rstrip('/')}/_checkpoints/{query}/{generation}"
