"""What an older copy of the control database has lost of erasures comes back from their receipts and from bronze."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from tests.support.ports import started

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.contracts.contract import ERASED
from lockstep.control import erased
from lockstep.control.database import control
from lockstep.definition.tables import bronze_of
from lockstep.erase import receipt, restored
from lockstep.stack.postgres import post_start

STREAM = CONTRACTS["page_views"]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """PostgreSQL alone: nothing here needs Spark."""
    with started(tmp_path_factory.mktemp("home"), services=["postgres"]) as running:
        yield running


@pytest.fixture
def settings(stack):
    """Of a platform that has erased nobody."""
    yield stack.settings
    with control(stack.settings) as connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE erasures, erased_offsets, erased_versions")
    for file in receipt.directory(stack.settings).glob("*.json"):
        file.unlink()
    lake.remove(lake.path(stack.settings, bronze_of(STREAM)))


def bronze(settings, headers, record):
    """A commit of bronze whose rows, from offset 0 of partition 1, have these headers."""
    rows = [
        {"topic": STREAM.topic, "partition": 1, "offset": offset, "headers": [{"key": name, "value": b"1"}]}
        for offset, name in enumerate(headers)
    ]
    names = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "headers": HEADERS}
    write_deltalake(
        lake.path(settings, bronze_of(STREAM)),
        pa.Table.from_pylist(rows, pa.schema(names)),
        mode="append",
        commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(record)}),
    )


def kept(number, subject="token"):
    """A receipt, as far as it says what was erased."""
    asked = {"erasure": number, "subject": subject, "by": "ann", "approved_by": "bob", "reason": "ticket 4711"}
    return asked | {"asked_at": datetime(2026, 1, number, tzinfo=UTC).isoformat(), "records": {STREAM.name: 2}}


def begin(settings, offsets=(0,)):
    above = restored.newest_known(settings)
    return erased.begin(settings, "hers", "ann", "a reason", {}, {STREAM.topic: {1: offsets}}, above=above)


def test_numbers_of_erasures_rise_by_one(settings):
    assert [begin(settings, (n,)).number for n in range(2)] == [1, 2]


def test_a_number_that_a_receipt_has_is_not_used_again(settings):
    receipt.save(settings, kept(7))
    assert [begin(settings, (n,)).number for n in range(2)] == [8, 9]


def test_a_number_that_bronze_has_is_not_used_again(settings):
    bronze(settings, ["a"], {"writer": "ingest", "seq": 1})
    bronze(settings, ["b"], {"writer": "erase", "erasure": 5})
    bronze(settings, ["c"], {"writer": "ingest", "seq": 2})
    assert begin(settings).number == 6


def test_erasures_that_have_a_receipt_are_taken_over_with_the_offsets_that_bronze_has_marked(settings, caplog):
    bronze(settings, ["x", ERASED, ERASED, "y", ERASED], {"writer": "ingest", "seq": 1})
    begin(settings, (1,))
    for number, subject in ((2, "token"), (3, None)):
        receipt.save(settings, kept(number, subject))

    post_start(settings)

    assert "lacked 2 erasures" in caplog.text
    assert erased.of_topic(settings, STREAM.topic) == {1: (1, 2, 4)}
    assert erased.of_erasure(settings, 1, STREAM.topic) == {1: (1,)}, "what the copy has stays"
    _, hers, single = erased.every(settings)
    assert (hers.number, hers.subject, hers.by, hers.approved_by, hers.reason) == (
        2,
        "token",
        "ann",
        "bob",
        "ticket 4711",
    )
    assert (hers.receipt, hers.asked_at) == (kept(2), datetime(2026, 1, 2, tzinfo=UTC))
    assert None not in (hers.finished_at, single.finished_at, hers.key_destroyed_at)
    assert (single.subject, single.key_destroyed_at) == (None, None)
    caplog.clear()
    post_start(settings)
    assert "erasures" not in caplog.text, "they are known now"
