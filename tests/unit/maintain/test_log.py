"""However old it is, a log keeps what somebody may still ask it for."""

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from tests.support.commits import ledger_record, ranges, write_commit

from lockstep import lake, ledger
from lockstep.ledger import archive
from lockstep.maintain.run import _trim

ORDERS = "bronze.orders"


@pytest.fixture
def log(settings):
    """Thirty old commits with a checkpoint after each tenth; an entry in each of the first 27."""
    location = lake.path(settings, ORDERS)
    for n in range(30):
        record = ledger_record(ranges({0: (n, n + 1)}), seq=n + 1) if n < 27 else {}
        write_deltalake(
            location,
            pa.table({"n": [n]}),
            mode="append",
            configuration={"delta.checkpointInterval": "10", **ledger.RETENTION} if n == 0 else None,
            commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(record)}),
        )
    long_ago = time.time() - 30 * 86_400
    for file in (Path(location) / "_delta_log").iterdir():
        os.utime(file, (long_ago, long_ago))


@pytest.fixture
def archived(settings, ops_records):
    def up_to(version):
        write_commit(settings, archive.TABLE.name, 0)
        known = {"seq": version + 1, "version": version, "origin": {"0": 0}}
        ops_records.write(archive.TABLE.name, {"tables": {ORDERS: known}})

    return up_to


def oldest(settings):
    return min(commit.version for commit in lake.commits(settings, ORDERS))


@pytest.mark.parametrize(
    ("version", "held", "first"), [(26, None, 19), (18, None, 9), (8, None, 0), (26, 17, 9), (26, 28, 19)]
)
def test_from_a_checkpoint_before_the_last_archived_entry_and_that_of_held_readers(
    settings, log, archived, version, held, first
):
    archived(version)
    _trim(settings, ORDERS, held)
    assert oldest(settings) == first
    assert ledger.latest(settings, ORDERS).seq == 27
    assert ledger.origin(settings, ORDERS) == {0: 0}


def test_nothing_goes_before_the_first_archive(settings, log):
    _trim(settings, ORDERS, None)
    assert oldest(settings) == 0


def test_nothing_goes_while_it_is_young(settings, log, archived):
    archived(26)
    _trim(settings.model_copy(update={"log_hours": 31 * 24}), ORDERS, None)
    assert oldest(settings) == 0
