"""The generation of each live query: a row in the control database that says which checkpoint the query uses.

Each generation has its own checkpoint and its own transaction ids (``live:<table>:<generation>``). With the old ids, Delta would
skip the writes of a query that was reset, because it has seen those batch numbers. Generation 1 has no row.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.control.database import control
from lockstep.definition.tables import live_of

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Generation:
    """One checkpoint of a query, from its first batch until the next generation replaces it.

    Args:
        reason: why it was created, in a person's words.
        by: who created it.
        starts: per topic and partition, the offset at which it starts. A topic that is not named starts at its first offset.
        since: it writes only rows from this instant (UTC) on; earlier rows were written by earlier generations. None: all rows.
        savepoint: ``<query>/<name>`` of the savepoint that it continues; None: it starts without state.
        created_at: when its row was written (UTC); None for generation 1.
    """

    query: str
    number: int = 1
    reason: str = "first"
    by: str = ""
    starts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    since: datetime | None = None
    savepoint: str | None = None
    created_at: datetime | None = None

    @property
    def table(self) -> str:
        """The query's table in the live layer."""
        return live_of(self.query)

    @property
    def txn_app(self) -> str:
        """The name under which Delta remembers the numbers of its batches."""
        return f"live:{self.table}:{self.number}"

    def location(self, settings: "Settings") -> str:
        """The location of its checkpoint."""
        return lake.checkpoint(settings, self.query, self.number)

    def rows_written(self, view: "View") -> str:
        """The predicate (SQL) for the view's rows that this generation writes. Earlier generations wrote the others."""
        if self.since is None:
            return "true"
        return f"{view.time_column} >= TIMESTAMP '{self.since:%F %T.%f}'"


def current(settings: "Settings", query: str) -> int:
    """The number of the query's current generation."""
    return get(settings, query).number


def get(settings: "Settings", query: str) -> Generation:
    """The query's current generation."""
    return all_current(settings).get(query, Generation(query))


def all_current(settings: "Settings") -> dict[str, Generation]:
    """The current generation of each query that is past generation 1, by the query's name."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT ON (query) query, generation, reason, started_by, starts, since, savepoint, created_at "
            "FROM live_generations ORDER BY query, generation DESC"
        )
        return {row[0]: _generation(*row) for row in cursor.fetchall()}


def advance(
    settings: "Settings",
    query: str,
    reason: str,
    by: str,
    starts: Mapping[str, Mapping[int, int]] | None = None,
    since: datetime | None = None,
    savepoint: str | None = None,
    run_id: str | None = None,
) -> int:
    """Create the query's next generation, and return its number. Whoever runs the query switches to it.

    Args:
        run_id: the run that asks; when the same run asks again, no further generation is created.
    """
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO live_generations (query, generation, reason, started_by, starts, since, savepoint, run_id) "
            "SELECT %(query)s, before.last + 1, %(reason)s, %(by)s, %(starts)s, %(since)s, %(savepoint)s, %(run_id)s FROM "
            "(SELECT coalesce(max(generation), 1) AS last FROM live_generations WHERE query = %(query)s) before "
            "ON CONFLICT (query, run_id) DO NOTHING",
            {
                "query": query,
                "reason": reason,
                "by": by,
                "starts": json.dumps(starts or {}),
                "since": since,
                "savepoint": savepoint,
                "run_id": run_id,
            },
        )
    return current(settings, query)


def last_definition(settings: "Settings", generation: Generation) -> str | None:
    """The fingerprint of the definition with which the generation last started; None before its first start."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT fingerprint FROM live_definitions WHERE query = %s AND generation = %s",
            (generation.query, generation.number),
        )
        row = cursor.fetchone()
    return row[0] if row else None


def record_definition(settings: "Settings", generation: Generation, fingerprint: str) -> None:
    """Record the definition with which the generation starts."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO live_definitions (query, generation, fingerprint) VALUES (%s, %s, %s) ON CONFLICT (query) DO UPDATE "
            "SET generation = excluded.generation, fingerprint = excluded.fingerprint",
            (generation.query, generation.number, fingerprint),
        )


def _generation(
    query: str,
    number: int,
    reason: str,
    by: str,
    starts: Any,
    since: datetime | None,
    savepoint: str | None,
    created_at: datetime,
) -> Generation:
    return Generation(
        query=query,
        number=number,
        reason=reason,
        by=by,
        starts={topic: {int(p): offset for p, offset in ends.items()} for topic, ends in starts.items()},
        since=since.astimezone(UTC) if since else None,
        savepoint=savepoint,
        created_at=created_at.astimezone(UTC),
    )
