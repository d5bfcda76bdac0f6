"""Ask for a table as it was, and know what it was."""

import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tests.support.source import Source

from lockstep import lake
from lockstep.definition.tables import Tables
from lockstep.serving.as_of import Moment, query
from lockstep.settings import Settings

RUNS = 6


def asker(spark: Any, settings: Settings) -> Callable[..., list[Any]]:
    """The rows of a table as of a moment."""

    def rows(table: str, **moment: Any) -> list[Any]:
        found: list[Any] = spark.sql(query(settings, table, Moment(**moment))).collect()
        return found

    return rows


def assert_as_of_random_moments(source: Source, moments: int) -> None:
    """Change a captured table in six runs, and ask for it as of the version and the time of each, and of random offsets.

    Args:
        moments: how many are asked in all.
    """
    dice, orders, after, ask = random.Random(7), {}, [{}], asker(source.spark, source.settings)
    versions, times, current = {}, {}, Tables.of(source.contract).current
    for _ in range(RUNS):
        for _ in range(max(5, moments // RUNS)):
            key, lsn = str(dice.randrange(6)), 10 * len(after)
            if key in orders and dice.random() < 0.3:
                source.delete(lsn, order_id=key)
                del orders[key]
            else:
                orders[key] = f"kind{lsn}"
                source.insert(key, lsn, kind=orders[key])
            after.append(dict(orders))
        source.refine()
        commit = next(c for c in lake.commits(source.settings, current) if "ranges" in c.record)
        versions[commit.version], times[commit.timestamp] = dict(orders), dict(orders)

    def there(**moment: Any) -> dict[str, str]:
        return {row.order_id: row.kind for row in ask(current, **moment) if not row._deleted}

    for offset in dice.sample(range(len(after)), moments - 2 * RUNS):
        assert there(offsets={"": {0: offset}}) == after[offset]
    for version, expected in versions.items():
        assert there(version=version) == expected
    for milliseconds, expected in times.items():
        assert there(time=datetime.fromtimestamp(milliseconds / 1000, UTC)) == expected
