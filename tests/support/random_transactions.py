"""Random transactions while Connect, PostgreSQL and Spark are killed in turn, and what holds after each kill and at the end."""

import os
import signal
from collections.abc import Callable
from contextlib import closing
from functools import partial

import psycopg2
from pyspark.errors import PySparkException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed
from tests.support.captured import captured_table, taken
from tests.support.invariants import broken_tiles, fallen_commits
from tests.support.transactions import Writer

from lockstep import ledger
from lockstep.catalog import connect
from lockstep.contracts import Contract
from lockstep.definition.tables import Tables
from lockstep.errors import LockstepError
from lockstep.reconcile.with_source import Verified, verify
from lockstep.settings import Settings
from lockstep.stack.stack import Stack

VICTIMS = ("connect", "postgres", "spark")
# What a run ends with when a server dies under it. Airflow tries it again.
_DIED = (LockstepError, PySparkException, psycopg2.Error, ConnectionError)


def hold(
    stack: Stack, transactions: int, rounds: int, alters: float, tell: Callable[[int, str, str], None] = lambda *_: None
) -> None:
    """Kill a service in the middle of each round, and compare every row of the lake with the database after it.

    Args:
        transactions: of all rounds together.
        alters: how many of them change the table's columns, at random, from the second round on.
        tell: is told of each round its number, who was killed, and what was compared.
    """
    settings, half = stack.settings, transactions // rounds // 2
    patiently = Retrying(
        stop=stop_after_delay(300), wait=wait_fixed(1), retry=retry_if_exception_type(_DIED), reraise=True
    )
    with captured_table(stack) as contract, taken(settings, contract, _DIED):
        write = partial(_write, settings, contract)
        for number in range(rounds):
            victim = VICTIMS[number % len(VICTIMS)]
            # PostgreSQL shows a table that is rewritten as empty to who reads it as it was: Debezium's snapshot must be over.
            altered = alters if number else 0
            write(2 * number, half, altered)
            os.kill(stack.pid(victim), signal.SIGKILL)
            patiently(write, 2 * number + 1, half, altered)
            stack.wait_healthy(victim)
            found = patiently(_compare, settings, contract)
            assert (found.counts, found.rows > 10) == ({}, True), found
            tell(number, victim, f"{2 * half} transactions, {found.rows} rows")
        _check_history(settings, contract)


def _write(settings: Settings, contract: Contract, seed: int, count: int, alters: float) -> None:
    with closing(Writer(settings, contract.name, seed, alters)) as writer:
        writer.write(count)


def _compare(settings: Settings, contract: Contract) -> Verified:
    with connect(settings, "verify") as spark:
        return verify(spark, settings, contract, 240)


def _check_history(settings: Settings, contract: Contract) -> None:
    tables = Tables.of(contract)
    with connect(settings, "verify") as spark:
        columns = [*contract.columns]
        current = spark.table(tables.current).where("NOT _deleted").select(columns)
        is_current = spark.table(tables.history).where("is_current").select(columns)
        assert is_current.exceptAll(current).isEmpty()
        assert is_current.count() == current.count()
        assert broken_tiles(spark, contract) == []
        assert fallen_commits(spark, contract) == []
    added = {*ledger.latest(settings, tables.log).unknown}
    assert added
    assert all(name.startswith("added_") for name in added), "and no more: a wider column stays the contract's"
