"""Each version that is committed without Spark has a checksum file, as those have that Spark commits."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.schema import Schema
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from lockstep import lake
from lockstep.lake import Txn, version_checksum
from lockstep.lake.small_commits import SmallCommits, commit_nothing
from lockstep.settings import Settings

TABLE = "live.v"
SCHEMA = pa.schema([("page", pa.string()), ("views", pa.int64())])
KEY = ("page",)


def log_file(settings: Settings, name: str) -> Path:
    return Path(lake.path(settings, TABLE)) / "_delta_log" / name


def created(settings: Settings) -> SmallCommits:
    """The table as Spark creates it: its first version has a checksum."""
    DeltaTable.create(
        lake.path(settings, TABLE), Schema.from_arrow(SCHEMA), configuration={"delta.appendOnly": "false"}
    )
    actions = [json.loads(line) for line in log_file(settings, f"{0:020d}.json").read_text().splitlines()]
    first = {"metadata": next(a["metaData"] for a in actions if "metaData" in a)}
    first |= {"protocol": next(a["protocol"] for a in actions if "protocol" in a)}
    first |= {"tableSizeBytes": 0, "numFiles": 0, "numMetadata": 1, "numProtocol": 1, "allFiles": []}
    log_file(settings, f"{0:020d}.crc").write_text(json.dumps(first))
    return SmallCommits(settings, TABLE)


def rows(views: int) -> pa.Table:
    return pa.Table.from_pylist([{"page": page, "views": views} for page in ("/", "/cart")], SCHEMA)


def newest_checksum(settings: Settings) -> dict[str, Any]:
    version = DeltaTable(lake.path(settings, TABLE)).version()
    found: dict[str, Any] = json.loads(log_file(settings, f"{version:020d}.crc").read_text())
    return found


def newest_metadata(settings: Settings) -> dict[str, Any]:
    commits = sorted(log_file(settings, "").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    found: dict[str, Any] = [action["metaData"] for action in actions if "metaData" in action][-1]
    return found


WRITES = {
    "append": lambda table, n, _: table.append(rows(n), Txn("a", n), {}),
    "nothing": lambda table, n, _: table.append(SCHEMA.empty_table(), Txn("a", n), {}),
    "replace": lambda table, n, _: table.replace(rows(n), "true", Txn("a", n), {}),
    "merge": lambda table, n, _: table.merge(rows(n), KEY, None, Txn("a", n), {}),
    "merge that changes nothing": lambda table, n, _: table.merge(rows(n), KEY, "false", Txn("a", n), {}),
    "compact": lambda table, _n, _: table.compact(),
    "vacuum": lambda table, _n, _: table.vacuum(0),
    "properties": lambda table, n, _: table.set_properties({"delta.logRetentionDuration": f"interval {n + 9} days"}),
    "commit nothing": lambda _table, n, settings: commit_nothing(settings, TABLE, {"n": n}),
}


@examples(max_examples=30)
@given(st.lists(st.sampled_from(sorted(WRITES)), min_size=1, max_size=8))
def test_the_checksum_counts_the_files_and_bytes_of_the_newest_version(
    tmp_path_factory: pytest.TempPathFactory, writes: list[str]
) -> None:
    settings = Settings(home=tmp_path_factory.mktemp("lake"))
    created(settings)
    for number, write in enumerate(writes):
        WRITES[write](SmallCommits(settings, TABLE), number, settings)
    sizes = pa.table(DeltaTable(lake.path(settings, TABLE)).get_add_actions())["size_bytes"].to_pylist()
    checksum = newest_checksum(settings)
    assert (checksum["numFiles"], checksum["tableSizeBytes"]) == (len(sizes), sum(sizes))
    assert checksum["metadata"] == newest_metadata(settings)


def test_a_writer_that_died_before_its_checksum_does_not_stop_the_next_one(settings: Settings) -> None:
    table = created(settings)
    for number in range(3):
        table.append(rows(number), Txn("a", number), {})
    log_file(settings, f"{3:020d}.crc").unlink()
    log_file(settings, f"{2:020d}.crc").write_text('{"numFi')
    table.append(rows(3), Txn("a", 3), {})
    assert newest_checksum(settings)["numFiles"] == 4


def test_where_the_log_does_not_say_enough_there_is_no_checksum(settings: Settings) -> None:
    table = created(settings)
    log_file(settings, f"{0:020d}.crc").unlink()
    table.append(rows(1), Txn("a", 1), {})
    assert not log_file(settings, f"{1:020d}.crc").exists()
    checksum = {"tableSizeBytes": 9, "numFiles": 1, "metadata": {"id": "m"}, "protocol": {"minReaderVersion": 1}}
    assert version_checksum.following(checksum, [[{"remove": {"path": "of unknown size"}}]]) is None


def test_the_checksum_names_the_transaction_of_its_commit_where_it_has_one(settings: Settings) -> None:
    checksum = {"tableSizeBytes": 9, "numFiles": 1, "metadata": {"id": "m"}, "protocol": {"minReaderVersion": 1}}
    committed = {"commitInfo": {"txnId": "t", "inCommitTimestamp": 7}}
    following = version_checksum.following(checksum, [[{"commitInfo": {"txnId": "before"}}], [committed]])
    assert following is not None
    assert (following["txnId"], following["inCommitTimestampOpt"]) == ("t", 7)
