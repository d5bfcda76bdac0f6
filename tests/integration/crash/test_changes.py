"""A task killed between the current rows of a source table and the log of their changes."""

import json
import uuid

import pytest
from tests.integration.crash.driver import run_until_killed
from tests.integration.crash.flow import drain, table_named
from tests.support.shop import Shop

from lockstep import ledger
from lockstep.definition.tables import Tables
from lockstep.kafka_clients import ensure_topics


@pytest.fixture
def users(settings):
    """Changes of a table like users, with a topic and tables of its own."""
    contract = table_named(f"users_{uuid.uuid4().hex[:8]}")
    ensure_topics(settings, {contract.name: contract})
    return contract


def change(shop, user_id, age, lsn):
    """What Debezium sends for an update."""
    source = {"lsn": lsn, "ts_ms": lsn, "snapshot": "false", "sequence": json.dumps([str(lsn), str(lsn)])}
    after = {"user_id": user_id, "age": age, "updated_at": "2026-11-10T10:00:00Z"}
    shop.raw(json.dumps({"before": None, "after": after, "op": "u", "source": source}).encode(), lsn, key=user_id)
    shop.flush()


def test_what_came_before_the_retry_is_in_the_current_rows_too(settings, users, rows):
    """P4 of a stream of changes."""
    shop = Shop(settings, users)
    change(shop, "u1", 30, lsn=1)
    run_until_killed(users.name, "changes-applied:1", "--table")
    assert ledger.latest(settings, Tables.of(users).log) is None, "killed before the log of the changes"
    change(shop, "u2", 40, lsn=2)
    change(shop, "u1", 31, lsn=3)
    drain(settings, users, (), "retry")
    assert {row["user_id"]: row["age"] for row in rows(f"silver.{users.name}")} == {"u1": 31, "u2": 40}
    assert sorted(row["_lsn"] for row in rows(f"silver.{users.name}_changes")) == [1, 2, 3]
