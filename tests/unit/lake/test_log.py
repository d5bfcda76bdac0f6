"""The logs of the lake's tables, read without Spark."""

from tests.support.commits import commit_text, write_commit

from lockstep import lake
from lockstep.settings import Settings

ORDERS = "bronze.orders"


def test_commits_are_read_newest_first(tmp_path):
    settings = Settings(home=tmp_path)
    assert not lake.exists(settings, ORDERS)
    for version in range(3):
        write_commit(settings, ORDERS, version, {"seq": version}, rows=version, size=100, timestamp=version * 1000)
    assert lake.exists(settings, ORDERS)
    found = [(c.version, c.record["seq"], c.rows, c.size, c.timestamp) for c in lake.commits(settings, ORDERS)]
    assert found == [(2, 2, 2, 100, 2000), (1, 1, 1, 100, 1000), (0, 0, 0, 100, 0)]


def test_a_commit_of_somebody_else_has_no_record():
    for text in ("by hand", "[1]", ""):
        assert lake.parse_commit(ORDERS, 3, commit_text(text, operation="OPTIMIZE")).record == {}
