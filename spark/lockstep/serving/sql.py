"""The SQL text of the views that readers query. Pure."""

from datetime import datetime

from lockstep.definition import View
from lockstep.definition.view import literal

_NULL_TIME = "CAST(NULL AS TIMESTAMP)"


def at_version(table: str, version: int | None) -> str:
    """The table at a version, as it is written after FROM; None: its newest version."""
    return table if version is None else f"{table} VERSION AS OF {version:d}"


def only_live(view: View, live: str) -> str:
    """All rows of the live layer: there is no batch layer yet."""
    return _layer(view, live, "live", "_updated_at", "true")


def only_batch(view: View, gold: str, committed_at: datetime) -> str:
    """All rows of the batch layer: an upserted view has no live layer yet."""
    return _layer(view, gold, "batch", literal(committed_at), "true")


def closed_and_live(view: View, gold: str, live: str | None, committed_at: datetime, until: datetime) -> str:
    """Batch's rows up to an instant, and live's rows after it. Both are cut at the same instant, so no row is in both.

    Args:
        committed_at: when gold was last written (UTC).
        until: the instant (UTC) before which gold is final.
    """
    final = view.final_before(until)
    batch_rows = _layer(view, gold, "batch", literal(committed_at), final)
    if live is None:
        return batch_rows
    return f"{batch_rows} UNION ALL {_layer(view, live, 'live', '_updated_at', f'NOT ({final})')}"


def newest_of_each_key(view: View, gold: str, live: str, committed_at: datetime, ahead_since: datetime) -> str:
    """For each key, batch's row, or live's row if it is newer. One join reads both tables, so each key appears once.

    Args:
        committed_at: when gold was last written (UTC).
        ahead_since: live's rows that were written after this instant (UTC) are newer than gold.
    """
    newer = f"SELECT * FROM {live} WHERE _updated_at > {literal(ahead_since)}"  # noqa: S608
    same_key = " AND ".join(f"g.{name} <=> l.{name}" for name in view.key)
    columns = ", ".join(f"if(l._updated_at IS NULL, g.{name}, l.{name}) AS {name}" for name in view.output_columns)
    layer = "if(l._updated_at IS NULL, 'batch', 'live') AS _layer"
    added = f"{layer}, false AS _final, coalesce(l._updated_at, {literal(committed_at)}) AS _as_of"
    return f"SELECT {columns}, {added} FROM (SELECT * FROM {gold}) g FULL OUTER JOIN ({newer}) l ON {same_key}"  # noqa: S608


def freshness_row(view: str, final_until: datetime | None, batch_at: datetime | None, live: str | None) -> str:
    """A row of ``serving.freshness``.

    Args:
        live: the live table, whose newest row is looked up by each query; None: there is none.
    """
    final, batch = (literal(moment) if moment else _NULL_TIME for moment in (final_until, batch_at))
    live_at = f"(SELECT max(_updated_at) FROM {live})" if live else "NULL"  # noqa: S608
    return (
        f"SELECT '{view}' AS view, {final} AS final_until, {batch} AS batch_at, CAST({live_at} AS TIMESTAMP) AS live_at"
    )


def _layer(view: View, table: str, layer: str, as_of: str, where: str) -> str:
    """The rows of one layer. Batch's are final, but in an upserted view every row can change."""
    final = "true" if layer == "batch" and not view.upserts else "false"
    added = f"'{layer}' AS _layer, {final} AS _final, {as_of} AS _as_of"
    return f"SELECT {', '.join(view.output_columns)}, {added} FROM {table} WHERE {where}"  # noqa: S608
