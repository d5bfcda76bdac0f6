"""A task killed between the current rows of a source table and the log of their changes."""

import json
import uuid
from dataclasses import replace

import pytest
from tests.support.shop import Shop

from lockstep.contracts import CONTRACTS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine import silver


class Killed(BaseException):
    """Nobody catches it."""


@pytest.fixture
def users(settings):
    """Changes of a table like users, with a topic and tables of its own."""
    name = f"users_{uuid.uuid4().hex[:8]}"
    contract = replace(CONTRACTS["users"], name=name, topic=name)
    ensure_topics(settings, {name: contract})
    return contract


def change(shop, user_id, age, lsn):
    """What Debezium sends for an update."""
    source = {"lsn": lsn, "ts_ms": lsn, "snapshot": "false", "sequence": json.dumps([str(lsn), str(lsn)])}
    after = {"user_id": user_id, "age": age, "updated_at": "2026-11-10T10:00:00Z"}
    shop.raw(json.dumps({"before": None, "after": after, "op": "u", "source": source}).encode(), lsn, key=user_id)
    shop.flush()


def test_what_came_before_the_retry_is_in_the_current_rows_too(spark, settings, users, rows, monkeypatch):
    shop = Shop(settings, users)
    change(shop, "u1", 30, lsn=1)
    ingest(spark, settings, users, "run")
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(silver, "failpoint", lambda name: _die_at("changes-applied", name))
        silver.refine(spark, settings, users, "killed")
    change(shop, "u2", 40, lsn=2)
    change(shop, "u1", 31, lsn=3)
    ingest(spark, settings, users, "run")
    while silver.refine(spark, settings, users, "retry"):
        pass
    assert {row["user_id"]: row["age"] for row in rows(f"silver.{users.name}")} == {"u1": 31, "u2": 40}
    assert sorted(row["_lsn"] for row in rows(f"silver.{users.name}_changes")) == [1, 2, 3]


def _die_at(point, name):
    if name == point:
        raise Killed
