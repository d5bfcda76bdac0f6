"""The cost of enriching page views with their user: a query to PostgreSQL per event, a cache in front of it, or the as-of join.

    python benchmarks/enrichment.py --events 20000 --users 200

Needs only PostgreSQL (`lockstep up`), and leaves nothing there: the users are a temporary table. Each way processes the same hour
twice: as it happens, and after an outage, when all changes of the hour are in the table before its first event is processed. A
row is wrong if its age is not that of the user at the event's time. The as-of join is the state machine of `page_views_enriched`,
without Spark. The database is on the same machine, so a query costs no network.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import quantiles
from typing import Annotated, Any

import psycopg2
import typer
from psycopg2.extensions import cursor
from rich.console import Console
from rich.table import Table

from lockstep import settings
from lockstep.definition import Event
from shop.views.page_views_enriched import VIEW

START = datetime(2026, 1, 1, tzinfo=UTC)
# In seconds. Five minutes are a usual time to live of a cache.
HOUR, CACHED_FOR = 3600.0, 300.0


@dataclass(frozen=True)
class View:
    """A page view: its user, when it happened, and when it is processed (in seconds of the hour)."""

    number: int
    user: str
    at: float
    processed: float


@dataclass(frozen=True)
class Change:
    """A user's new age."""

    number: int
    user: str
    at: float
    age: int


def hour(users: int, events: int, changes: int) -> tuple[list[View], list[Change]]:
    """An hour of views and changes from one seed. One view in a hundred arrives minutes late."""
    dice = Random(7)  # noqa: S311
    names = [f"u{n}" for n in range(users)]
    changed = [Change(n, name, -1.0, dice.randrange(18, 80)) for n, name in enumerate(names)]
    changed += [
        Change(n, dice.choice(names), dice.uniform(0, HOUR), dice.randrange(18, 80))
        for n in range(users, users + changes)
    ]
    views = []
    for n in range(events):
        at = dice.uniform(0, HOUR)
        delay = dice.uniform(300, 1200) if dice.random() < 0.01 else dice.expovariate(2)
        views.append(View(n, dice.choice(names), at, at + delay))
    return sorted(views, key=lambda v: v.processed), sorted(changed, key=lambda c: c.at)


class Lookup:
    """Queries the database for each event; with a cache of ``keep`` seconds, only for users that are not in it."""

    def __init__(self, sql: cursor, keep: float) -> None:
        self.sql, self.keep = sql, keep
        self.cache: dict[str, tuple[float, int]] = {}
        sql.execute("DROP TABLE IF EXISTS pg_temp.people")
        sql.execute("CREATE TEMP TABLE people (user_id text PRIMARY KEY, age int)")

    def change(self, change: Change) -> dict[int, int | None]:
        """Change the table. The cache is not updated."""
        self.sql.execute(
            "INSERT INTO people VALUES (%s, %s) ON CONFLICT (user_id) DO UPDATE SET age = excluded.age",
            (change.user, change.age),
        )
        return {}

    def view(self, view: View) -> dict[int, int | None]:
        """The age that the table, or the cache, has now."""
        asked, age = self.cache.get(view.user, (float("-inf"), 0))
        if view.processed - asked > self.keep:
            self.sql.execute("SELECT age FROM people WHERE user_id = %s", (view.user,))
            (age,) = self.sql.fetchone() or (None,)
            self.cache[view.user] = (view.processed, age)
        return {view.number: age}


class AsOf:
    """The state machine of the view, one per user."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}

    def change(self, change: Change) -> dict[int, int | None]:
        """A new version, and the rows that it corrects."""
        at = START + timedelta(seconds=change.at)
        data = {"name": None, "age": change.age, "updated_at": at.isoformat(), "_lsn": change.number, "_deleted": False}
        return self._step(change.user, Event(at, change.user, "users", data, f"{change.number:020}"))

    def view(self, view: View) -> dict[int, int | None]:
        """The age as of the event's time."""
        data = {"user_id": view.user, "page": "/"}
        return self._step(view.user, Event(START + timedelta(seconds=view.at), str(view.number), "page_views", data))

    def _step(self, user: str, event: Event) -> dict[int, int | None]:
        self.states[user], rows = VIEW.process(self.states.get(user), event)
        return {int(row["event_id"]): row["age"] for row in rows}


def measure(way: Lookup | AsOf, views: list[View], changes: list[Change], outage: bool) -> tuple[list[float], int]:
    """Seconds for each event, and how many rows are wrong at the end."""
    ages: dict[int, int | None] = {}
    seconds = []
    for item in _as_processed(views, changes, outage):
        began = time.perf_counter()
        if isinstance(item, Change):
            ages |= way.change(item)
        else:
            ages |= way.view(item)
            seconds.append(time.perf_counter() - began)
    truth = _truth(views, changes)
    return seconds, sum(ages[number] != age for number, age in truth.items())


def _as_processed(views: list[View], changes: list[Change], outage: bool) -> Iterator[View | Change]:
    both: list[tuple[float, int, View | Change]] = [(-1.0 if outage else c.at, 0, c) for c in changes]
    both += [(v.processed, 1, v) for v in views]
    return (item for _, _, item in sorted(both, key=lambda b: b[:2]))


def _truth(views: list[View], changes: list[Change]) -> dict[int, int]:
    ages = {}
    by_user: dict[str, list[Change]] = {}
    for change in changes:
        by_user.setdefault(change.user, []).append(change)
    for view in views:
        ages[view.number] = [c.age for c in by_user[view.user] if c.at <= view.at][-1]
    return ages


def main(
    events: Annotated[int, typer.Option(min=100)] = 20_000,
    users: Annotated[int, typer.Option(min=1)] = 200,
    changes: Annotated[int, typer.Option(min=0)] = 2_000,
) -> None:
    """Measure the three ways, and print a table."""
    views, changed = hour(users, events, changes)
    table = Table("way", "situation", "events/s", "p50 µs", "p99 µs", "wrong rows")
    with psycopg2.connect(settings.load().dsn("shop")) as database, database.cursor() as sql:
        for outage in (False, True):
            ways: dict[str, Callable[[], Lookup | AsOf]] = {
                "lookup": lambda: Lookup(sql, -1),
                f"cached {CACHED_FOR:.0f} s": lambda: Lookup(sql, CACHED_FOR),
                "as-of join": AsOf,
            }
            for name, make in ways.items():
                seconds, wrong = measure(make(), views, changed, outage)
                cuts = quantiles(seconds, n=100)
                table.add_row(
                    name,
                    "after an outage" if outage else "as it happens",
                    f"{len(seconds) / sum(seconds):,.0f}",
                    f"{cuts[49] * 1e6:,.0f}",
                    f"{cuts[98] * 1e6:,.0f}",
                    f"{wrong} of {len(views)} ({wrong / len(views):.1%})",
                )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
