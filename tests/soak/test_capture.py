"""Ten thousand random transactions, while Connect, PostgreSQL and Spark are killed in turn: the lake equals the database.

From the second round on, one change in fifty is one of the table's columns.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import closing

import psycopg2
import pytest
from pyspark.errors import PySparkException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed
from tests.support.captured import captured_table, taken
from tests.support.invariants import broken_tiles, fallen_commits
from tests.support.ports import SHORT_LIVED, started
from tests.support.transactions import Writer

from lockstep.catalog import connect
from lockstep.errors import LockstepError
from lockstep.reconcile.with_source import Verified, verify
from lockstep.stack.stack import Stack

TRANSACTIONS = int(os.environ.get("LOCKSTEP_SOAK_TRANSACTIONS", "10000"))
ROUNDS = 12
VICTIMS = ("connect", "postgres", "spark")
# What a run ends with when a server dies under it. Airflow tries it again.
DIED = (LockstepError, PySparkException, psycopg2.Error, ConnectionError)


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with started(tmp_path_factory.mktemp("capture"), SHORT_LIVED) as stack:
        yield stack


@pytest.mark.timeout(3600)
def test_the_lake_equals_the_database_whoever_is_killed(own_stack, report):
    settings = own_stack.settings
    patiently = Retrying(
        stop=stop_after_delay(300), wait=wait_fixed(1), retry=retry_if_exception_type(DIED), reraise=True
    )

    def write(table: str, seed: int, count: int) -> None:
        # Debezium's snapshot must be over: PostgreSQL shows a table that is rewritten as empty to who reads it as it was.
        with closing(Writer(settings, table, seed, alters=1 / 50 if seed > 1 else 0)) as writer:
            writer.write(count)

    def compare() -> Verified:
        with connect(settings, "verify") as spark:
            return verify(spark, settings, contract, 240)

    with captured_table(own_stack) as contract, taken(settings, contract, DIED):
        for number in range(ROUNDS):
            victim, half = VICTIMS[number % len(VICTIMS)], TRANSACTIONS // ROUNDS // 2
            write(contract.name, 2 * number, half)
            os.kill(own_stack.pid(victim), signal.SIGKILL)
            patiently(write, contract.name, 2 * number + 1, half)
            own_stack.wait_healthy(victim)
            found = patiently(compare)
            told = f"{2 * half} transactions, {found.rows} rows"
            report(f"| {number} | {2 * number + 1} | {victim} | | {told} | {not found.counts} |")
            assert found.counts == {}, found
        with connect(settings, "verify") as spark:
            assert broken_tiles(spark, contract) == []
            assert fallen_commits(spark, contract) == []
