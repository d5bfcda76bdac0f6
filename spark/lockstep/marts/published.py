"""Which version of each mart readers see: write, audit, publish.

dbt builds and tests the tables and views of ``marts_built``. Readers' ``marts.<name>`` is a SQL view of the same table, at the
version at which a whole run had passed its tests. ``ops.marts_published`` has these versions: one commit of it publishes all
that a run has built. What a run has written that failed, or was killed, is taken back before the next one builds on it.

A mart that dbt makes as a view has no versions: its definition is published with the others, and reads what they publish.
"""

import itertools
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from lockstep import lake
from lockstep.errors import LedgerBroken
from lockstep.failpoints import failpoint
from lockstep.ledger.ops_table import OpsTable, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

log = logging.getLogger(__name__)
COLUMNS = {"table": "STRING", "version": "BIGINT", "run_id": "STRING", "published_at": "TIMESTAMP"}
TABLE = OpsTable("ops.marts_published", COLUMNS, "marts")
# Who dbt's commits say that they are from, if Lockstep runs it.
WRITER = "dbt"
# Operations of Delta that change no row.
_HOUSEKEEPING = {"OPTIMIZE", "VACUUM START", "VACUUM END"}
_BUILT = re.compile(rf"\b{lake.BUILT}\b")


@dataclass(frozen=True)
class Published:
    """What readers see.

    Args:
        versions: by table (``marts.<name>``), its version.
        views: the names of dbt's views and their queries, each after those that it reads.
    """

    versions: Mapping[str, int]
    views: Sequence[tuple[str, str]] = ()


def current(settings: "Settings") -> Published | None:
    """What is published; None: nothing was ever, because the marts are new or of an older release. Needs no Spark."""
    record = TABLE.newest(settings)
    if "versions" not in record:
        return None
    return Published(record["versions"], tuple((name, query) for name, query in record["views"]))


def unpublished(settings: "Settings") -> list[str]:
    """The tables with rows that readers do not see: a run builds them now, or has died."""
    published = current(settings) or Published({})
    return [
        table
        for table in lake.tables(settings, (lake.MARTS,))
        if not _is_seen(settings, table, published.versions.get(table))
    ]


def is_unpublished(settings: "Settings", table: str) -> bool:
    """Whether this table is among :func:`unpublished`, whatever the others are like."""
    published = current(settings) or Published({})
    return not _is_seen(settings, table, published.versions.get(table))


def begin(spark: "SparkSession", settings: "Settings", run_id: str) -> None:
    """Before a run: take back what one that died has left. Marts of an older release are published as they are.

    The caller holds the lease of the marts.
    """
    known = current(settings)
    if known is None:
        tables = lake.tables(settings, (lake.MARTS,))
        _commit(spark, settings, run_id, Published({t: lake.newest_version(settings, t) or 0 for t in tables}))
    else:
        take_back(spark, settings, run_id)
    show(spark, settings)


def take_back(spark: "SparkSession", settings: "Settings", run_id: str) -> None:
    """Restore each table to its published version, and remove those that a run has made for the first time."""
    published = current(settings) or Published({})
    versions = dict(published.versions)
    for table in unpublished(settings):
        if table not in versions:
            # Nothing is removed that somebody else has put there.
            if next(lake.commits(settings, table)).record.get("writer") == WRITER:
                lake.drop(spark, settings, table)
            continue
        spark.sql(f"RESTORE TABLE delta.`{lake.path(settings, table)}` TO VERSION AS OF {versions[table]:d}")
        versions[table] = lake.newest_version(settings, table) or 0
        log.warning("%s is what readers see again: what was written since was not published", table)
    versions = {table: version for table, version in versions.items() if lake.exists(settings, table)}
    if versions != published.versions:
        _commit(spark, settings, run_id, replace(published, versions=versions))


def publish(
    spark: "SparkSession", settings: "Settings", run_id: str, views: Iterable[tuple[str, str]], *, are_all: bool
) -> None:
    """Show readers all tables as they are, and these views of dbt's, in one commit.

    Args:
        views: as dbt has made them, each after those that it reads.
        are_all: there are no others any more.
    """
    known = current(settings) or Published({})
    new = {name: _BUILT.sub(lake.MARTS, query) for name, query in views}
    old = {} if are_all else {name: query for name, query in known.views if name not in new}
    versions = {table: lake.newest_version(settings, table) or 0 for table in lake.tables(settings, (lake.MARTS,))}
    _commit(spark, settings, run_id, Published(versions, [*old.items(), *new.items()]))
    failpoint("marts-published")
    show(spark, settings)


def show(spark: "SparkSession", settings: "Settings") -> None:
    """Make the views in the catalog say what is published. Those that say it are left alone."""
    published = current(settings)
    if published is None:
        return
    known = lake.information(spark, lake.catalog_name(settings, lake.MARTS))
    for name, query in [*_of_tables(settings, published), *published.views]:
        try:
            lake.create_view(spark, settings, name, {}, query, known)
        except AnalysisException as error:
            if error.getCondition() != "TABLE_OR_VIEW_NOT_FOUND":
                raise
            # The server has started, and dbt's staging views are made by the next run.
            log.warning("%s is not there before what it reads is: %s", name, str(error).strip().partition("\n")[0])


def _of_tables(settings: "Settings", published: Published) -> list[tuple[str, str]]:
    found = []
    for table, version in published.versions.items():
        if lake.exists(settings, table):
            try:
                same = _same_rows(settings, table, version)
            except LedgerBroken as error:
                log.error("Readers see %s as before: %s", table, error)
                continue
            found.append((table, f"SELECT * FROM {lake.table_name(settings, table)} VERSION AS OF {same:d}"))  # noqa: S608
    return found


def _is_seen(settings: "Settings", table: str, version: int | None) -> bool:
    return version is not None and _same_rows(settings, table, version) == lake.newest_version(settings, table)


def _same_rows(settings: "Settings", table: str, version: int) -> int:
    """The newest version with the rows of this one: after it, the table was only compacted and vacuumed."""
    later = [*itertools.takewhile(lambda commit: commit.version > version, lake.commits(settings, table))]
    same = itertools.takewhile(lambda commit: commit.operation in _HOUSEKEEPING, reversed(later))
    return max((commit.version for commit in same), default=version)


def _commit(spark: "SparkSession", settings: "Settings", run_id: str, published: Published) -> None:
    now = datetime.now(UTC)
    with TABLE.writing(spark, settings, run_id) as commit:
        before: Mapping[str, Any] = commit.newest().get("versions", {})
        changed = {t: version for t, version in published.versions.items() if before.get(t) != version}
        rows: Rows = [(table, version, run_id, now) for table, version in sorted(changed.items())]
        commit.append(rows, {"versions": dict(published.versions), "views": [list(view) for view in published.views]})
