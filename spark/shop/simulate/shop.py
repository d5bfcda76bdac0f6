"""The shop's database. Each slice is one transaction that also has the progress, so a killed simulation can go on."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from random import Random
from typing import NamedTuple

import pandas as pd
import psycopg2
from psycopg2.extensions import connection
from psycopg2.extras import Json

from lockstep.errors import LockstepError
from lockstep.settings import Settings
from shop.simulate import writes
from shop.simulate.plan import Plan
from shop.simulate.retail import Retail

# Any number that nothing else in this database locks.
_LOCK = 7_214_001


class ShopUnavailable(LockstepError):
    """The shop's database cannot be reached, or another simulator is writing to it."""


class Progress(NamedTuple):
    """How far a simulation has come: until when (UTC) orders are written and traffic is acknowledged."""

    plan: Plan
    orders_until: datetime
    traffic_until: datetime
    finished: bool


class Shop:
    """A connection that writes the shop's tables and the progress. Only one may be open at a time."""

    def __init__(self, database: connection) -> None:
        self._database = database

    def progress(self) -> Progress | None:
        """The progress of the simulation that was begun in this database, if any."""
        with self._database, self._database.cursor() as sql:
            sql.execute("SELECT plan, orders_until, traffic_until, finished FROM simulator.state")
            row = sql.fetchone()
        if row is None:
            return None
        plan, orders, traffic, finished = row
        return Progress(Plan.model_validate(plan), orders.astimezone(UTC), traffic.astimezone(UTC), finished)

    def begin(self, plan: Plan, retail: Retail) -> Progress:
        """Write products, stock, earlier customers and the plan, in one transaction."""
        with self._database, self._database.cursor() as sql:
            sql.execute(
                "INSERT INTO simulator.state (shift_weeks, plan, orders_until, traffic_until) VALUES (%s, %s, %s, %s)",
                (plan.shift_weeks, Json(plan.model_dump(mode="json")), plan.start, plan.start),
            )
            writes.stock_the_shop(sql, plan, retail)
            writes.sign_up(sql, plan, retail, None, plan.start)
        return Progress(plan, plan.start, plan.start, finished=False)

    def write(self, plan: Plan, retail: Retail, start: datetime, end: datetime) -> int:
        """Write what happens in the shop in ``[start, end)``, and the progress, in one transaction.

        Returns:
            how many order lines were written.
        """
        orders, lines = retail.between(start, end)
        with self._database, self._database.cursor() as sql:
            writes.sign_up(sql, plan, retail, start, end)
            writes.run_the_shop(sql, plan, retail, start, end)
            writes.place_orders(sql, orders, lines)
            sql.execute("UPDATE simulator.state SET orders_until = %s", (end,))
        return len(lines)

    def trade(self, orders: pd.DataFrame, lines: pd.DataFrame) -> None:
        """Place orders in real time, in one transaction: with their lines, and what they take from the stock."""
        with self._database, self._database.cursor() as sql:
            writes.trade(sql, orders, lines)

    def change_a_little(self, rng: Random, retail: Retail, moment: datetime) -> None:
        """Change a price and a customer."""
        with self._database, self._database.cursor() as sql:
            writes.change_a_little(sql, rng, retail, moment)

    def traffic_sent(self, until: datetime, finished: bool = False) -> None:
        """Record that all traffic before ``until`` was acknowledged, and whether the simulation has ended."""
        with self._database, self._database.cursor() as sql:
            sql.execute("UPDATE simulator.state SET traffic_until = %s, finished = %s", (until, finished))


@contextmanager
def open_shop(settings: Settings) -> Iterator[Shop]:
    """Connect to the shop's database, create its tables if they do not exist, and keep other simulators out.

    Raises:
        ShopUnavailable: no connection, or another simulator is running.
    """
    try:
        database = psycopg2.connect(settings.dsn("shop"))
    except psycopg2.OperationalError as error:
        raise ShopUnavailable(
            f"the shop's database at {settings.postgres_host}:{settings.postgres_port} does not answer "
            f"({str(error).strip()}); start it with `lockstep up`"
        ) from error
    try:
        with database, database.cursor() as sql:
            sql.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))
            if sql.fetchone() != (True,):
                raise ShopUnavailable("another simulator is running in this shop: wait for it, or stop it first")
            sql.execute(files(__package__).joinpath("schema.sql").read_text(encoding="utf-8"))
        yield Shop(database)
    except (psycopg2.OperationalError, psycopg2.InterfaceError) as error:
        raise ShopUnavailable(
            f"the shop's database went away ({str(error).strip()}); see `lockstep status`, then run `lockstep simulate` "
            "again: it goes on where it stopped"
        ) from error
    finally:
        database.close()
