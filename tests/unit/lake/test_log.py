"""The logs of the lake's tables, read without Spark."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commits import commit_text, write_commit

from lockstep import lake
from lockstep.errors import LedgerBroken
from lockstep.lake import log
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


@pytest.fixture
def listed(monkeypatch):
    """The directories that were listed."""
    found = []
    listing = log.Log.versions
    monkeypatch.setattr(log.Log, "versions", lambda self: found.append(self._root) or listing(self))
    return found


def _cleaned(settings, oldest, newest, checkpoint):
    """A log whose old commits Delta has removed, because a checkpoint has what was in them."""
    for version in range(oldest, newest + 1):
        write_commit(settings, ORDERS, version, {"seq": version})
    directory = Path(lake.path(settings, ORDERS)) / "_delta_log"
    (directory / "_last_checkpoint").write_text(json.dumps({"version": checkpoint, "size": 1}))
    return directory


def _versions(settings):
    return [commit.version for commit in lake.commits(settings, ORDERS)]


def test_the_newest_commits_are_found_without_listing_the_log(tmp_path, listed):
    settings = Settings(home=tmp_path)
    _cleaned(settings, oldest=90, newest=133, checkpoint=100)
    assert lake.exists(settings, ORDERS)
    newest_first = lake.commits(settings, ORDERS)
    assert [next(newest_first).version for _ in range(44)] == list(range(133, 89, -1))
    assert listed == []
    assert next(newest_first, None) is None


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_all_commits_are_read_wherever_the_log_begins_and_its_checkpoint_is(tmp_path_factory, oldest, more, behind):
    settings, newest = Settings(home=tmp_path_factory.mktemp("home")), oldest + more
    _cleaned(settings, oldest, newest, checkpoint=max(newest - behind, 0))
    assert _versions(settings) == list(range(newest, oldest - 1, -1))


@pytest.mark.parametrize("last_checkpoint", ["", "{", '{"version": 7}'])
def test_a_log_is_read_although_its_last_checkpoint_is_torn_or_names_a_version_that_is_gone(tmp_path, last_checkpoint):
    settings = Settings(home=tmp_path)
    (_cleaned(settings, 11, 14, 12) / "_last_checkpoint").write_text(last_checkpoint)
    assert _versions(settings) == [14, 13, 12, 11]


def test_a_missing_commit_hides_none_of_those_before_it(tmp_path):
    settings = Settings(home=tmp_path)
    (_cleaned(settings, 11, 14, 14) / f"{12:020d}.json").unlink()
    assert _versions(settings) == [14, 13, 11]


@pytest.mark.parametrize("text", ["", "\n", '{"commitInfo": {"time'])
def test_a_commit_that_was_cut_short_is_named_with_the_way_out(tmp_path, text):
    settings = Settings(home=tmp_path)
    (_cleaned(settings, 0, 3, 0) / f"{3:020d}.json").write_text(text)
    with pytest.raises(LedgerBroken, match=f"{ORDERS}: version 3 was cut short .* `lockstep ledger repair"):
        _versions(settings)


def test_a_commit_of_somebody_else_has_no_record():
    for text in ("by hand", "[1]", ""):
        assert lake.parse_commit(ORDERS, 3, commit_text(text, operation="OPTIMIZE")).record == {}
