"""Ten thousand random transactions, while Connect, PostgreSQL and Spark are killed in turn: the lake equals the database.

From the second round on, one change in fifty is one of the table's columns.
"""

import os

import pytest
from tests.support.ports import SHORT_LIVED
from tests.support.random_transactions import hold

TRANSACTIONS = int(os.environ.get("LOCKSTEP_SOAK_TRANSACTIONS", "10000"))
ROUNDS = 12


@pytest.fixture
def java() -> str:
    return SHORT_LIVED


@pytest.mark.timeout(3600)
def test_the_lake_equals_the_database_whoever_is_killed(stack, report):
    def tell(number: int, victim: str, told: str) -> None:
        report(f"| {number} | {2 * number + 1} | {victim} | | {told} | True |")

    hold(stack, TRANSACTIONS, ROUNDS, alters=1 / 50, tell=tell)
