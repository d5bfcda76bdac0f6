"""A table of the platform's own bookkeeping, as it is written."""

import uuid

import pytest

from lockstep import lake
from lockstep.control.leases import lease
from lockstep.errors import LeaseHeld
from lockstep.ledger.ops_table import OpsTable


@pytest.fixture
def table(spark, settings):
    own = OpsTable(f"ops.test_{uuid.uuid4().hex[:8]}", {"name": "STRING", "n": "INT"}, "tester")
    yield own
    lake.drop(spark, settings, own.name)


def test_each_commit_has_its_rows_and_the_next_number(spark, settings, rows, table):
    for n in (1, 2):
        with table.writing(spark, settings, "run") as commit:
            assert commit.seq == n
            commit.append([("a", n)], {"n": n})
    with table.writing(spark, settings, "run") as commit:
        commit.replace([("b", 1)], "n = 1", {"n": 3})
    assert [c.record["n"] for c in table.commits(settings)] == [3, 2, 1]
    assert sorted((r["name"], r["n"]) for r in rows(table.name)) == [("a", 2), ("b", 1)]


def test_a_commit_that_is_tried_again_is_made_once(spark, settings, rows, table):
    with table.writing(spark, settings, "run") as commit:
        commit.append([("a", 1)], {})
        commit.append([("a", 1)], {})
    assert len(rows(table.name)) == 1


def test_nobody_else_can_write_meanwhile(spark, settings, table):
    refusal = pytest.raises(LeaseHeld, match=f"{table.name} is being written by lockstep:{table.name}:first")
    with table.writing(spark, settings, "first"), refusal, lease(settings, table.name, "second", wait_seconds=1):
        pass
