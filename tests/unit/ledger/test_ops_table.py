"""The records of a table of the platform's own bookkeeping, read from its log."""

from types import SimpleNamespace

from tests.support.commits import write_commit

from lockstep.ledger.ops_table import NextCommit, OpsTable
from lockstep.settings import Settings

TABLE = OpsTable("ops.test", {"name": "STRING"}, "tester")


def following(settings, table=TABLE):
    return NextCommit(table, SimpleNamespace(), settings, table.newest(settings))


def test_the_newest_record_is_of_the_writer_and_not_of_maintenance(tmp_path):
    settings = Settings(home=tmp_path)
    write_commit(settings, TABLE.name, 0, "", operation="CREATE TABLE")
    write_commit(settings, TABLE.name, 1, {"writer": "tester", "seq": 1, "name": "a"})
    write_commit(settings, TABLE.name, 2, {"writer": "tester", "seq": 2, "name": "b"})
    write_commit(settings, TABLE.name, 3, {"writer": "somebody", "seq": 9})
    write_commit(settings, TABLE.name, 4, "", operation="OPTIMIZE")
    assert TABLE.newest(settings)["name"] == "b"
    assert [commit.version for commit in TABLE.commits(settings)] == [2, 1]


def test_numbers_begin_at_one_and_rise_by_one(tmp_path):
    settings = Settings(home=tmp_path)
    assert TABLE.newest(settings) == {}
    assert following(settings).record({"name": "a"}) == {"writer": "tester", "seq": 1, "name": "a"}
    write_commit(settings, TABLE.name, 1, {"writer": "tester", "seq": 41})
    assert following(settings).seq == 42


def test_a_field_cannot_take_the_place_of_the_number_or_the_writer(tmp_path):
    before = {"writer": "tester", "seq": 7, "name": "a"}
    record = NextCommit(TABLE, SimpleNamespace(), Settings(home=tmp_path), before).record(before | {"name": "b"})
    assert record == {"writer": "tester", "seq": 8, "name": "b"}
