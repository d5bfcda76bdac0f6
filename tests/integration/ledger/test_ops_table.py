"""A table of the platform's own bookkeeping, as it is written, and what is left of it when a part is lost."""

import logging
import uuid
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.torn import cut, newest_commits

from lockstep import lake
from lockstep.control import records
from lockstep.control.database import control
from lockstep.control.leases import lease
from lockstep.errors import LeaseHeld, Overtaken
from lockstep.ledger.ops_table import OpsTable, recover
from lockstep.maintain import torn


@pytest.fixture
def table(spark, settings):
    own = OpsTable(f"ops.test_{uuid.uuid4().hex[:8]}", {"name": "STRING", "n": "INT"}, "tester")
    yield own
    lake.drop(spark, settings, own.name)


@pytest.fixture
def write(spark, settings, table):
    """Makes one commit."""

    def commit(n, key=""):
        with table.writing(spark, settings, "run") as following:
            following.append([("a", n)], {"n": n}, key)

    return commit


def _forget(settings, table, after=0):
    """What restoring an older copy of the control database does."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM ops_records WHERE table_name = %s AND seq > %s", (table.name, after))


def _clean_log(settings, table):
    """What is left of a quiet table after 30 days: a commit of maintenance, and a checkpoint of what was before it."""
    opened = DeltaTable(lake.path(settings, table.name))
    opened.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
    opened.create_checkpoint()
    for file in (Path(lake.path(settings, table.name)) / "_delta_log").glob("*.json"):
        if int(file.stem) < opened.version():
            file.unlink()


def test_each_commit_has_its_rows_and_the_next_number(spark, settings, rows, table):
    for n in (1, 2):
        with table.writing(spark, settings, "run") as commit:
            assert commit.seq == n
            commit.append([("a", n)], {"n": n})
    with table.writing(spark, settings, "run") as commit:
        assert commit.newest()["n"] == 2
        commit.replace([("b", 1)], "n = 1", {"n": 3})
    assert table.newest(settings) == {"n": 3, "writer": "tester", "seq": 3, "key": ""}
    assert sorted((r["name"], r["n"]) for r in rows(table.name)) == [("a", 2), ("b", 1)]


def test_the_newest_record_of_each_key_is_kept_in_the_order_in_which_they_were_written(settings, table, write):
    for n, key in enumerate(("one", "other", "one")):
        write(n, key)
    assert table.newest(settings, "one")["n"] == 2
    assert table.newest(settings, "none") == {}
    assert [(r.key, r.fields["n"]) for r in table.newest_of_each_key(settings)] == [("other", 1), ("one", 2)]


def test_a_key_that_is_forgotten_has_no_record_also_in_an_older_copy_of_the_database(spark, settings, table, write):
    write(1, "one")
    write(2, "other")
    with table.writing(spark, settings, "run") as commit:
        commit.forget("one")
    for _ in range(2):
        assert table.newest(settings, "one") == {}
        assert [record.key for record in table.newest_of_each_key(settings)] == ["other"]
        _forget(settings, table)
        recover(settings, table.name)
    write(3, "one")
    assert table.newest(settings, "one")["n"] == 3


def test_a_field_cannot_take_the_place_of_the_number_or_the_writer(spark, settings, table):
    with table.writing(spark, settings, "run") as commit:
        commit.append([], {"writer": "somebody", "seq": 9, "n": 1})
    assert table.newest(settings) == {"n": 1, "writer": "tester", "seq": 1, "key": ""}


def test_a_commit_that_is_tried_again_is_made_once_and_one_whose_number_was_taken_is_refused(
    spark, settings, rows, table
):
    with table.writing(spark, settings, "run") as commit:
        commit.append([("a", 1)], {"n": 1})
        commit.append([("a", 1)], {"n": 1})
        with pytest.raises(Overtaken, match="somebody else has written its record 1"):
            commit.append([("b", 1)], {"n": 2})
    assert [row["name"] for row in rows(table.name)] == ["a"]


def test_nobody_else_can_write_meanwhile(spark, settings, table):
    refusal = pytest.raises(LeaseHeld, match=f"{table.name} is being written by lockstep:{table.name}:first")
    with table.writing(spark, settings, "first"), refusal, lease(settings, table.name, "second", wait_seconds=1):
        pass


def test_numbers_and_records_outlive_the_log(settings, rows, table, write):
    """Delta keeps a log for 30 days; numbers that began at 1 again would be skipped by Delta without a word."""
    write(1)
    write(2)
    _clean_log(settings, table)
    assert table.newest(settings)["n"] == 2
    write(3)
    assert (table.newest(settings)["n"], table.newest(settings)["seq"]) == (3, 3)
    assert sorted(row["n"] for row in rows(table.name)) == [1, 2, 3]


def test_an_older_copy_of_the_control_database_is_brought_forward_by_the_next_commit(settings, table, write):
    for n, key in enumerate(("one", "other", "one"), 1):
        write(n, key)
    _forget(settings, table, after=1)
    write(4, "third")
    found = [(r.key, r.seq, r.fields["n"]) for r in table.newest_of_each_key(settings)]
    assert found == [("other", 2, 2), ("one", 3, 3), ("third", 4, 4)]


def test_a_writer_that_died_before_the_record_was_decided_has_its_commit_counted(
    settings, rows, table, write, monkeypatch
):
    class Died(BaseException):
        """A kill between the two commits."""

    def die(*_):
        raise Died

    write(1)
    with monkeypatch.context() as patch, pytest.raises(Died):
        patch.setattr(records, "put", die)
        write(2)
    assert table.newest(settings)["n"] == 1
    assert recover(settings, table.name) == 1
    assert table.newest(settings)["n"] == 2
    write(3)
    assert sorted(row["n"] for row in rows(table.name)) == [1, 2, 3]


def test_what_neither_the_database_nor_the_log_has_is_named(settings, table, write, caplog):
    for n in (1, 2, 3):
        write(n)
    _forget(settings, table, after=1)
    log = Path(lake.path(settings, table.name)) / "_delta_log"
    with_two = next(c.version for c in lake.commits(settings, table.name) if c.record.get("seq") == 2)
    (log / f"{with_two:020d}.json").unlink()
    with caplog.at_level(logging.WARNING):
        assert recover(settings, table.name) == 1
    assert (
        f"{table.name}: 1 of its records, from 2 to 2, are neither in the control database nor in its log"
        in caplog.text
    )
    assert table.newest(settings)["seq"] == 3


def test_a_number_is_not_used_again_when_nothing_has_its_record(spark, settings, rows, table, write):
    write(1)
    write(2)
    _clean_log(settings, table)
    _forget(settings, table)
    with table.writing(spark, settings, "run") as commit:
        assert commit.seq == 3
        commit.append([("a", 3)], {"n": 3})
    assert sorted(row["n"] for row in rows(table.name)) == [1, 2, 3]


def test_a_torn_log_is_ended_and_the_platform_decides_by_what_the_control_database_has(spark, settings, table, write):
    for n in (1, 2, 3):
        write(n)
    cut(newest_commits(settings, table.name, 1))
    (ended,) = torn.repair(spark, settings, table.name, "an operator", "a power cut")
    assert "are lost" in ended.following
    assert table.newest(settings)["n"] == 3
    write(4)
    rows = DeltaTable(lake.path(settings, table.name)).to_pyarrow_table().to_pylist()
    assert sorted(row["n"] for row in rows) == [1, 2, 4]
    assert [commit.record["seq"] for commit in lake.commits(settings, table.name) if "seq" in commit.record] == [
        4,
        2,
        1,
    ]
