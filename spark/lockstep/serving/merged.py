"""The merged answer: ``serving.<view>``, batch where it is final, live after that, and never both.

Each is a SQL view in the catalog, derived like the tables, and replaced in one step when batch has come further. To the
columns of the view it adds:

==========  =============================================================================================================
``_layer``  ``batch`` or ``live``: where the row is from
``_final``  whether batch has closed it; only a replay changes it after that
``_as_of``  when its layer last wrote (TIMESTAMP, UTC): the row knows nothing later
==========  =============================================================================================================

A view that reads tables has no final rows. Of each key it shows batch's row, or live's where that knows more of the log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of, serving_of
from lockstep.definition.view import BEGINNING, END, literal
from lockstep.live.frontier import checkpoint_location, final_at, live_position, live_within
from lockstep.quality import outcomes
from lockstep.serving.manifest import published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.ledger.entries import Entry
    from lockstep.settings import Settings

FRESHNESS = "serving.freshness"


@dataclass(frozen=True)
class Freshness:
    """How far the layers of a view have come.

    Args:
        final_until: rows of windows that end by then, or of instants before it, are batch's, and final (UTC); None: none is.
        batch_at: when batch last wrote (UTC).
        live_at: when live last wrote (UTC).
    """

    view: str
    final_until: datetime | None
    batch_at: datetime | None
    live_at: datetime | None


def visible(settings: "Settings") -> dict[str, int]:
    """The tables whose readers are held back, each with the version to read; of all others it is the newest.

    Held back by a replay that is being promoted, or because what came later has failed its gate.
    """
    held, gates = published(settings), outcomes.passed(settings)
    for table, outcome in gates.newest.items():
        if outcome.startswith("FAILED"):
            held[table] = min(held.get(table, gates.positions.get(table, -1)), gates.positions.get(table, -1))
    return held


def publish(spark: "SparkSession", settings: "Settings", views: Iterable[View]) -> None:
    """Let readers follow batch to where it is now: replace each merged answer, and :data:`FRESHNESS`, in one step each."""
    known = [view for view in views if lake.exists(settings, gold_of(view)) or lake.exists(settings, live_of(view))]
    if not known:
        return
    # One at a time: a slow one would put back what is final to where it was when it looked.
    with lease(settings, "serving", "publish"):
        held = visible(settings)
        shown = [(view, text) for view in known if (text := _text(settings, view, held))]
        for view, text in shown:
            spark.sql(f"CREATE OR REPLACE VIEW {serving_of(view)} AS {text}")
        if shown:
            rows = " UNION ALL ".join(_freshness_text(settings, view, held) for view, _ in shown)
            spark.sql(f"CREATE OR REPLACE VIEW {FRESHNESS} AS {rows}")


def follow(spark: "SparkSession", settings: "Settings", tables: Iterable[str]) -> None:
    """The same, where one of these tables was held back or let go of."""
    if {gold_of(view) for view in VIEWS.values()} & set(tables):
        publish(spark, settings, VIEWS.values())


def freshness(settings: "Settings", view: View, held: Mapping[str, int]) -> Freshness:
    """How fresh an answer of the view is now, from the tables' logs; no Spark."""
    done = _entry(settings, view, held)
    newest = next((c for c in lake.commits(settings, live_of(view)) if c.record.get("writer") == "live"), None)
    return Freshness(
        view.name,
        None if done is None or view.upserts else final_at(settings, view, done),
        _moment(done.committed_at) if done else None,
        _moment(newest.timestamp) if newest else None,
    )


def _entry(settings: "Settings", view: View, held: Mapping[str, int]) -> "Entry | None":
    """The newest entry of gold that readers may see."""
    version = held.get(gold_of(view))
    entries = ledger.entries(settings, gold_of(view))
    return next((entry for entry in entries if version is None or entry.version <= version), None)


def _text(settings: "Settings", view: View, held: Mapping[str, int]) -> str | None:
    """The query behind the merged answer; None while neither layer has a table."""
    done = _entry(settings, view, held)
    live = live_of(view) if lake.exists(settings, live_of(view)) else None
    if done is None:
        return _select(view, live, "live", "_updated_at", "true") if live else None
    version = held.get(gold_of(view))
    gold = gold_of(view) + (f" VERSION AS OF {version:d}" if version is not None else "")
    if view.upserts:
        return _upserted(settings, view, gold, live, done)
    until = final_at(settings, view, done) or BEGINNING
    batch = _select(view, gold, "batch", literal(_moment(done.committed_at)), view.final_before(until))
    return (
        f"{batch} UNION ALL {_select(view, live, 'live', '_updated_at', f'NOT ({view.final_before(until)})')}"
        if live
        else batch
    )


def _select(view: View, table: str, layer: str, as_of: str, where: str) -> str:
    final = "true" if layer == "batch" and not view.upserts else "false"
    more = f"'{layer}' AS _layer, {final} AS _final, {as_of} AS _as_of"
    return f"SELECT {', '.join(view.output_columns)}, {more} FROM {table} WHERE {where}"  # noqa: S608


def _upserted(settings: "Settings", view: View, gold: str, live: str | None, done: "Entry") -> str:
    """Batch's row of each key, or live's where that is newer: both tables are looked at once, so that a key is there once."""
    as_of = literal(_moment(done.committed_at))
    if live is None:
        return _select(view, gold, "batch", as_of, "true")
    newer = f"SELECT * FROM {live} WHERE _updated_at > {literal(_ahead_since(settings, view, done))}"  # noqa: S608
    keys = " AND ".join(f"g.{name} <=> l.{name}" for name in view.key)
    columns = ", ".join(f"if(l._updated_at IS NULL, g.{name}, l.{name}) AS {name}" for name in view.output_columns)
    layer = "if(l._updated_at IS NULL, 'batch', 'live') AS _layer"
    more = f"{layer}, false AS _final, coalesce(l._updated_at, {as_of}) AS _as_of"
    return f"SELECT {columns}, {more} FROM (SELECT * FROM {gold}) g FULL OUTER JOIN ({newer}) l ON {keys}"  # noqa: S608


def _ahead_since(settings: "Settings", view: View, done: "Entry") -> datetime:
    """The instant (UTC) from which on live's rows know more of the log than gold; never, while live is behind."""
    place = checkpoint_location(settings, view)
    for topic in (CONTRACTS[stream].topic for stream in view.streams):
        position = live_position(place, topic)
        if any(position.get(r.partition, 0) < r.end for r in done.ranges if r.topic == topic):
            return END
    seen = live_within(settings, view, done)
    return seen.changed_at if seen else BEGINNING


def _freshness_text(settings: "Settings", view: View, held: Mapping[str, int]) -> str:
    now = freshness(settings, view, held)
    live = f"(SELECT max(_updated_at) FROM {live_of(view)})" if lake.exists(settings, live_of(view)) else "NULL"  # noqa: S608
    moments = [literal(m) if m else "CAST(NULL AS TIMESTAMP)" for m in (now.final_until, now.batch_at)]
    return (
        f"SELECT '{view.name}' AS view, {moments[0]} AS final_until, {moments[1]} AS batch_at, "
        f"CAST({live} AS TIMESTAMP) AS live_at"
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
