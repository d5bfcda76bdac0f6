"""A read view in PostgreSQL: the entities of each aggregate as they are, and a full-text index. It is rebuilt from the log alone.

It has the fold of a prefix of the log in each partition: entities and position change in one transaction. So no reader sees half
of an event, and a process that is killed leaves nothing to repair.
"""

from collections.abc import Iterable
from contextlib import closing
from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING, Any

from psycopg2.extras import Json, execute_values

from lockstep.commands.aggregate import Aggregate, Entities, Entity
from lockstep.commands.decisions import Partition
from lockstep.commands.log import events
from lockstep.control.database import control

if TYPE_CHECKING:
    from lockstep.settings import Settings

AnyAggregate = Aggregate[Any, Any, Any]

# Of one transaction, which may take a minute.
_EVENTS = 5_000
_BEGIN = "INSERT INTO read_positions VALUES (%s, %s, 0, %s) ON CONFLICT DO NOTHING"
_POSITION = "SELECT position, version FROM read_positions WHERE aggregate = %s AND partition = %s FOR UPDATE"
_FORGET = "DELETE FROM read_entities WHERE aggregate = %s AND partition = %s"
_MOVE = "UPDATE read_positions SET position = %s, version = %s WHERE aggregate = %s AND partition = %s"
_READ = """
SELECT e.key, e.entity, e.version, e.at, e.state FROM read_entities e
JOIN unnest(%s::text[], %s::text[]) AS named (key, entity) USING (key, entity) WHERE aggregate = %s
"""
_WRITE = """
INSERT INTO read_entities (aggregate, key, entity, partition, version, at, state) VALUES %s
ON CONFLICT (aggregate, key, entity) DO UPDATE SET version = excluded.version, at = excluded.at, state = excluded.state
"""
_SEARCH = """
SELECT key, entity, version, at, state FROM read_entities
WHERE aggregate = %(aggregate)s AND words @@ websearch_to_tsquery('simple', %(words)s)
ORDER BY ts_rank(words, websearch_to_tsquery('simple', %(words)s)) DESC, key, entity LIMIT %(limit)s
"""


def project(settings: "Settings", aggregate: AnyAggregate) -> int:
    """Bring the read view to where the log is now; return how many events that took. Several may do so at once.

    What another ``evolve`` has written is folded again.
    """
    return sum(_project(settings, aggregate, number) for number in range(aggregate.partitions))


def rebuild(settings: "Settings", aggregate: AnyAggregate) -> int:
    """Forget the read view, and fold the log again; return the number of its events. Readers see it grow."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE read_positions SET version = '' WHERE aggregate = %s", (aggregate.name,))
    return project(settings, aggregate)


def search(settings: "Settings", aggregate: AnyAggregate, words: str, limit: int) -> list[tuple[str, str, Entity[Any]]]:
    """The entities whose key, name or state have these words, the best first: each with its key and name.

    Args:
        words: as in a search engine: ``a b`` both, ``a or b``, ``-a`` not, ``"a b"`` in this order.
    """
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute(_SEARCH, {"aggregate": aggregate.name, "words": words, "limit": limit})
        return [(key, entity, _entity(aggregate, *values)) for key, entity, *values in cursor.fetchall()]


def _project(settings: "Settings", aggregate: AnyAggregate, number: int) -> int:
    total = 0
    while count := _project_some(settings, aggregate, number):
        total += count
    return total


def _project_some(settings: "Settings", aggregate: AnyAggregate, number: int) -> int:
    with control(settings) as connection:
        connection.autocommit = False
        # Commits at its end, and holds the row of the position until then: another one waits, and goes on from there.
        with connection, connection.cursor() as cursor:
            position = _begin(cursor, aggregate, number)
            with closing(events(settings, aggregate, number, position)) as log:
                new = [*islice(log, _EVENTS)]
            if not new:
                return 0
            names = {(one.key, name) for _, one in new for name in one.event.entities}
            partition = Partition(aggregate, number, dict(_read(cursor, aggregate, names)))
            for _, one in new:
                partition.fold(one)
            rows = [
                (aggregate.name, key, name, number, e.version, e.at, Json(e.state.model_dump(mode="json")))
                for (key, name), e in partition.entities.items()
            ]
            execute_values(cursor, _WRITE, rows)
            cursor.execute(_MOVE, (new[-1][0] + 1, aggregate.version, aggregate.name, number))
            return len(new)


def _begin(cursor: Any, aggregate: AnyAggregate, number: int) -> int:
    """The position of the read view; 0, with nothing in it, if another ``evolve`` has written it."""
    cursor.execute(_BEGIN, (aggregate.name, number, aggregate.version))
    cursor.execute(_POSITION, (aggregate.name, number))
    position, version = cursor.fetchone()
    if version == aggregate.version:
        return int(position)
    cursor.execute(_FORGET, (aggregate.name, number))
    cursor.execute(_MOVE, (0, aggregate.version, aggregate.name, number))
    return 0


def _read(cursor: Any, aggregate: AnyAggregate, names: Iterable[tuple[str, str]]) -> Entities[Any]:
    names = sorted(names)
    cursor.execute(_READ, ([key for key, _ in names], [name for _, name in names], aggregate.name))
    return {(key, name): _entity(aggregate, *values) for key, name, *values in cursor.fetchall()}


def _entity(aggregate: AnyAggregate, version: int, at: Any, state: Any) -> Entity[Any]:
    return Entity(type(aggregate.initial).model_validate(state), version, at.astimezone(UTC))
