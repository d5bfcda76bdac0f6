"""A captured table is in the lake what it is in its database, whatever transactions do and whoever is killed."""

import pytest
from tests.support.random_transactions import VICTIMS, hold


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_lake_equals_the_database_under_random_transactions_and_changes_of_columns_whoever_is_killed(stack):
    hold(stack, transactions=500, rounds=len(VICTIMS), alters=1 / 20)
