"""Who may hold an interval of a table."""

import uuid
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.control.database import control
from lockstep.control.intervals import IntervalHeld, backfilling, claim, holders, release

START = datetime(2026, 11, 10, 10, tzinfo=UTC)


@pytest.fixture
def table(settings):
    """A table that no other test knows."""
    name = f"gold.{uuid.uuid4().hex}"
    yield name
    for row in holders(settings):
        if row["table_name"] == name:
            release(settings, row["holder"])


def test_a_claim_waits_for_one_that_is_not_committed_yet(settings, table):
    span = (START, START + timedelta(hours=1))
    with ThreadPoolExecutor(1) as pool, control(settings) as connection:
        connection.autocommit = False
        with connection, connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO interval_locks (holder, kind, table_name, low, high) VALUES (%s, 'replay', %s, %s, %s)",
                (f"first-{table}", table, *span),
            )
            second = pool.submit(claim, settings, f"second-{table}", {table: span})
            assert not wait([second], timeout=1).done
        with pytest.raises(IntervalHeld, match=f"held by the replay first-{table}"):
            second.result(30)


def test_intervals_that_touch_do_not_overlap(settings, table):
    hour = timedelta(hours=1)
    claim(settings, f"first-{table}", {table: (START, START + hour)})
    claim(settings, f"second-{table}", {table: (START + hour, START + 2 * hour)})
    with pytest.raises(IntervalHeld, match=f"held by the replay first-{table}"):
        claim(settings, f"third-{table}", {table: (START - hour, START + timedelta(minutes=1))})


def test_two_backfills_do_not_exclude_each_other(settings, table):
    span = {table: (START, START + timedelta(hours=1))}
    with backfilling(settings, f"a-{table}", span), backfilling(settings, f"b-{table}", span):
        assert [row["kind"] for row in holders(settings) if row["table_name"] == table] == ["backfill"] * 2
    assert not [row for row in holders(settings) if row["table_name"] == table]
