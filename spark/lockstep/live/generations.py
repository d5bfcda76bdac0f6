"""The generation of each live query: a row in the control database, and the only switch from one checkpoint to the next.

A generation has a checkpoint and transaction ids of its own (``live:<table>:<generation>``), so that no write of a query that
was reset is skipped as one that Delta has seen. Generation 1 needs no row.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.control.database import control

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings



@dataclass(frozen=True)
class Generation:
    """One life of a query's checkpoint.

    Args:
        starts: per topic and partition the offset at which it begins, where it has no checkpoint yet; topics that are not
            named begin at their first offset.
        since: rows before this instant (UTC) are those of earlier generations: it does not write them. None: it writes all.
        savepoint: ``<query>/<name>`` of the savepoint that it goes on from; None: it begins without state.
    """

    query: str
    number: int = 1
    why: str = "first"
    by: str = ""
    starts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    since: datetime | None = None
    savepoint: str | None = None
    begun_at: datetime | None = None

    @property
    def table(self) -> str:
        """The query's table in the live layer."""
        return f"live.{self.query}"

    @property
    def txn_app(self) -> str:
        """The name under which Delta remembers its batches."""
        return f"live:{self.table}:{self.number}"

    def location(self, settings: "Settings") -> str:
        """Where its checkpoint is."""
        return lake.checkpoint(settings, self.query, self.number)

    def written(self, view: "View") -> str:
        """The predicate (SQL) for the view's rows that it writes; the others are those of earlier ones."""
        if self.since is None:
            return "true"
        return f"{view.time_column} >= TIMESTAMP '{self.since:%F %T.%f}'"


def current(settings: "Settings", query: str) -> int:
    """The number of the query's generation."""
    return get(settings, query).number


def get(settings: "Settings", query: str) -> Generation:
    """The query's generation."""
    return all_current(settings).get(query, Generation(query))


def all_current(settings: "Settings") -> dict[str, Generation]:
    """The generation of each query that is past its first, by name."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT ON (query) query, generation, why, started_by, starts, since, savepoint, begun_at "
            "FROM live_generations ORDER BY query, generation DESC"
        )
        return {row[0]: _generation(*row) for row in cursor.fetchall()}


def advance(
    settings: "Settings",
    query: str,
    why: str,
    by: str,
    starts: Mapping[str, Mapping[int, int]] | None = None,
    since: datetime | None = None,
    savepoint: str | None = None,
    run_id: str | None = None,
) -> int:
    """Begin the query's next generation, and return its number; whoever runs the query takes it up.

    Args:
        run_id: of the task that asks; when it is run again, it begins no other.
    """
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO live_generations (query, generation, why, started_by, starts, since, savepoint, run_id) "
            "SELECT %(query)s, before.last + 1, %(why)s, %(by)s, %(starts)s, %(since)s, %(savepoint)s, %(run_id)s FROM "
            "(SELECT coalesce(max(generation), 1) AS last FROM live_generations WHERE query = %(query)s) before "
            "ON CONFLICT (query, run_id) DO NOTHING",
            {
                "query": query,
                "why": why,
                "by": by,
                "starts": json.dumps(starts or {}),
                "since": since,
                "savepoint": savepoint,
                "run_id": run_id,
            },
        )
    return current(settings, query)


def definition(settings: "Settings", generation: Generation) -> str | None:
    """The fingerprint of the definition with which the generation last started; None before its first start."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT fingerprint FROM live_definitions WHERE query = %s AND generation = %s",
            (generation.query, generation.number),
        )
        row = cursor.fetchone()
    return row[0] if row else None


def started(settings: "Settings", generation: Generation, fingerprint: str) -> None:
    """Write down with which definition the generation starts."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO live_definitions (query, generation, fingerprint) VALUES (%s, %s, %s) ON CONFLICT (query) DO UPDATE "
            "SET generation = excluded.generation, fingerprint = excluded.fingerprint",
            (generation.query, generation.number, fingerprint),
        )


def _generation(
    query: str,
    number: int,
    why: str,
    by: str,
    starts: Any,
    since: datetime | None,
    savepoint: str | None,
    begun: datetime,
) -> Generation:
    return Generation(
        query=query,
        number=number,
        why=why,
        by=by,
        starts={topic: {int(p): offset for p, offset in ends.items()} for topic, ends in starts.items()},
        since=since.astimezone(UTC) if since else None,
        savepoint=savepoint,
        begun_at=begun.astimezone(UTC),
    )
