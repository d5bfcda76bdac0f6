"""The merged view: ``serving.<view>`` has batch's rows where they are final, and live's rows after that.

It is a SQL view in the catalog, and is replaced in one step after each batch run. It has the view's columns, and these:

==========  =============================================================================================================
``_layer``  ``batch`` or ``live``: the layer that the row is from
``_final``  whether batch has closed the row; only a replay changes it after that
``_as_of``  when its layer last wrote (TIMESTAMP, UTC): later events are not in the row
==========  =============================================================================================================

A view that reads tables has no final rows. It has batch's row of each key, or live's row if that is newer.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition import View, columns
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of, live_of, serving_of
from lockstep.definition.view import BEGINNING, END
from lockstep.errors import Failures, LockstepError, SomeFailed
from lockstep.live.frontier import checkpoint_location, live_positions, live_within
from lockstep.quality import audited, outcomes
from lockstep.serving import sql
from lockstep.serving.manifest import published

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.ledger.entries import Entry
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
# What one view's tables may have, while those of others are well.
_TROUBLE = (LockstepError, PySparkException)
_LAYER = "serving"
FRESHNESS = f"{_LAYER}.freshness"


@dataclass(frozen=True)
class Freshness:
    """How fresh the layers of a view are.

    Args:
        final_until: windows that end by then, and instants before it, are final (UTC); None: nothing is final.
        batch_at: when batch last wrote (UTC).
        live_at: when live last wrote (UTC).
    """

    view: str
    final_until: datetime | None
    batch_at: datetime | None
    live_at: datetime | None


def visible(settings: "Settings") -> dict[str, int]:
    """By table, the version that readers see; of all others it is the newest.

    Of gold it is the newest version that a gate has passed, of silver the one before its gate was shut; or the one at which a
    replay that is being promoted holds the table. Of gold whose log is torn it is the one up to which a gate has passed rows.
    """
    held = published(settings)
    state = outcomes.latest(settings)
    passed = state.held_back | audited.versions(settings, state, map(gold_of, VIEWS.values()))
    for table, version in passed.items():
        held[table] = min(held.get(table, version), version)
    return held


def publish(spark: "SparkSession", settings: "Settings", views: Iterable[View]) -> None:
    """Replace each merged view, and :data:`FRESHNESS`, so that readers see what batch has finished. Each changes in one step.

    Raises:
        SomeFailed: some views could not be replaced, because a table's log is torn, or cannot be read. They stay as they were,
            without a row in :data:`FRESHNESS`; all others are replaced.
    """
    existing = _existing(settings, views)
    if not existing:
        return
    # One run at a time: a slow run would replace the views with what it read before a faster one.
    with lease(settings, "serving", "publish"):
        versions = visible(settings)
        merged: list[tuple[View, _Merged]] = []
        failures = Failures()
        for view in existing:
            with failures.of(serving_of(view), *_TROUBLE):
                if one := _merged(settings, view, versions):
                    merged.append((view, one))
        rows: list[str] = []
        known = lake.information(spark, lake.catalog_name(settings, _LAYER))
        for view, one in merged:
            with failures.of(serving_of(view), *_TROUBLE):
                _replace(spark, settings, view, one.query, versions, known)
                rows.append(one.freshness)
        if rows:
            with failures.of(FRESHNESS, *_TROUBLE):
                lake.create_view(spark, settings, FRESHNESS, columns.FRESHNESS, " UNION ALL ".join(rows), known)
    failures.check("Readers see some views as they were before")


@dataclass(frozen=True)
class _Merged:
    """The queries of a merged view, and of its row in :data:`FRESHNESS`."""

    query: str
    freshness: str


def _merged(settings: "Settings", view: View, versions: Mapping[str, int]) -> _Merged | None:
    """None: neither layer has a table that readers may see."""
    entry, final_until = _batch(settings, view, versions)
    live = lake.catalog_name(settings, live_of(view)) if lake.exists(settings, live_of(view)) else None
    query = _query(settings, view, versions, entry, final_until, live)
    batch_at = _moment(entry.committed_at) if entry else None
    return _Merged(query, sql.freshness_row(view.name, final_until, batch_at, live)) if query else None


def publish_or_log(spark: "SparkSession", settings: "Settings", views: Iterable[View]) -> None:
    """Publish, where it is not the task: views that cannot be replaced are only logged. The next run of the gates names them."""
    try:
        publish(spark, settings, views)
    except SomeFailed as error:
        log.error("%s", error)


def follow(spark: "SparkSession", settings: "Settings", tables: Iterable[str]) -> None:
    """Replace the merged views if one of these tables is gold: its published version has changed.

    Raises:
        SomeFailed: that of one of these tables could not be replaced.
    """
    changed = {serving_of(view) for view in VIEWS.values() if gold_of(view) in set(tables)}
    if not changed:
        return
    try:
        publish(spark, settings, VIEWS.values())
    except SomeFailed as error:
        if changed & error.failures.keys():
            raise
        log.error("%s", error)


def withdraw(spark: "SparkSession", settings: "Settings", view: str, others: Iterable[View]) -> None:
    """Remove the merged answer of a view whose tables are about to be removed, and its row of :data:`FRESHNESS`."""
    lake.drop_view(spark, settings, serving_of(view))
    if remaining := _existing(settings, others):
        publish_or_log(spark, settings, remaining)
    else:
        lake.drop_view(spark, settings, FRESHNESS)


def freshness(settings: "Settings", view: View, versions: Mapping[str, int]) -> Freshness:
    """How fresh the merged view is now, from the tables' logs; needs no Spark.

    Args:
        versions: the tables that readers do not see at their newest version: see :func:`visible`.
    """
    entry, final_until = _batch(settings, view, versions)
    live = next((c for c in lake.commits(settings, live_of(view)) if c.record.get("writer") == "live"), None)
    return Freshness(
        view.name,
        final_until,
        _moment(entry.committed_at) if entry else None,
        _moment(live.timestamp) if live else None,
    )


def _replace(
    spark: "SparkSession",
    settings: "Settings",
    view: View,
    query: str,
    versions: Mapping[str, int],
    known: Mapping[str, str],
) -> None:
    try:
        lake.create_view(spark, settings, serving_of(view), {**view.output_columns, **columns.MERGED}, query, known)
    except AnalysisException as error:
        gold = gold_of(view)
        if versions.get(gold) in (None, lake.newest_version(settings, gold)):
            raise
        # The view has got a column since the version that readers may see.
        reason = str(error).strip().partition("\n")[0]
        log.warning(
            "%s stays as it was until the new rows of %s have passed their gate: %s", serving_of(view), gold, reason
        )


def _existing(settings: "Settings", views: Iterable[View]) -> list[View]:
    """The views of which a layer has a table."""
    return [view for view in views if lake.exists(settings, gold_of(view)) or lake.exists(settings, live_of(view))]


def seen(settings: "Settings", view: View, versions: Mapping[str, int]) -> "Entry | None":
    """The newest entry of gold that readers may see.

    Args:
        versions: as in :func:`freshness`.
    """
    version = versions.get(gold_of(view))
    entries = ledger.entries(settings, gold_of(view))
    return next((entry for entry in entries if version is None or entry.version <= version), None)


def _batch(settings: "Settings", view: View, versions: Mapping[str, int]) -> "tuple[Entry | None, datetime | None]":
    """The newest entry of gold that readers may see, and the instant (UTC) before which it is final; None: nothing is."""
    entry = seen(settings, view, versions)
    return entry, None if entry is None or view.upserts else entry.until


def _query(
    settings: "Settings",
    view: View,
    versions: Mapping[str, int],
    entry: "Entry | None",
    final_until: datetime | None,
    live: str | None,
) -> str | None:
    """The query of the merged view; None: neither layer has a table that readers may see."""
    if entry is None:
        return sql.only_live(view, live) if live else None
    gold = sql.at_version(lake.catalog_name(settings, gold_of(view)), versions.get(gold_of(view)))
    committed_at = _moment(entry.committed_at)
    if not view.upserts:
        return sql.closed_and_live(view, gold, live, committed_at, final_until or BEGINNING)
    if live is None:
        return sql.only_batch(view, gold, committed_at)
    return sql.newest_of_each_key(view, gold, live, committed_at, _ahead_since(settings, view, entry))


def _ahead_since(settings: "Settings", view: View, entry: "Entry") -> datetime:
    """The instant (UTC) after which live's rows are newer than gold; END while live is behind gold in any partition."""
    position = live_positions(checkpoint_location(settings, view), view)
    # An entry may have a topic that the view no longer reads.
    if any(position[r.topic].get(r.partition, 0) < r.end for r in entry.ranges if r.topic in position):
        return END
    snapshot = live_within(settings, view, entry)
    return snapshot.changed_at if snapshot else BEGINNING


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
