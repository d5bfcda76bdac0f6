"""A row of a captured table is erased: its versions, its tokens, and its records in the changelog topic."""

import json

import pytest
from tests.support.erased import left
from tests.support.marts import order
from tests.support.records import change_record
from tests.support.servers import like
from tests.support.shop import START, Shop

from lockstep.catalog import connect
from lockstep.definition.tables import Tables
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import latest_by_key
from lockstep.refine.silver import refine
from lockstep.refine.tokens import token
from lockstep.serving.changelog import topic_of
from lockstep.serving.publish_changelog import publish_all


@pytest.fixture
def users(settings):
    """The customers of the shop, with a topic and tables of their own."""
    with like(settings, "users") as contract:
        yield contract


def change(shop, lsn, before, after):
    """A change as Debezium sends it, and the tombstone after a delete."""
    source = {"connector": "postgresql", "lsn": lsn, "sequence": json.dumps([str(lsn), str(lsn)]), "ts_ms": lsn}
    value = {"before": before, "after": after, "op": "d" if after is None else "u" if before else "c", "source": source}
    key = json.dumps({"user_id": (after or before)["user_id"]})
    shop.raw(json.dumps(value).encode(), lsn, key, partition=0)
    if after is None:
        shop.raw(None, lsn, key, partition=0)


def test_a_change_that_gave_a_row_to_somebody_else_is_about_both(settings, erase, rows, person):
    with like(settings, "orders") as orders:
        shop, tables = Shop(settings, orders), Tables.of(orders)
        hers, his = (order(1, 1) | {"user_id": user} for user in (person, f"{person}2"))
        for lsn, (before, after) in enumerate(((None, hers), (hers, his), (his, his | {"kind": "return"})), 1):
            value = change_record(orders.name, lsn, lsn, before, after).value
            shop.raw(json.dumps(value).encode(), lsn, json.dumps({"order_id": "1"}), partition=0)
        shop.flush()
        with connect(settings, "task") as session:
            ingest(session, settings, orders, "run")
            refine(session, settings, orders, "run")
        done = erase(person, orders)
        assert (done.receipt["records"], left(done.receipt, orders)) == ({orders.name: 2}, [])
        assert [(row["user_id"], row["kind"]) for row in rows(tables.log)] == [(f"{person}2", "return")]


def test_all_versions_of_a_row_go_with_their_tokens(spark, settings, users, erase, rows, person):
    shop, tables = Shop(settings, users), Tables.of(users)
    email, moved = f"{person}@example.org", f"{person}@example.com"
    at = {"created_at": START.isoformat(), "updated_at": START.isoformat(), "age": 30}
    ann = at | {"user_id": person, "name": "Ann Miller", "email": email}
    bob = at | {"user_id": f"{person}2", "name": "Ann Miller", "email": f"{person}2@example.org"}
    change(shop, 1, None, ann)
    change(shop, 2, None, bob)
    change(shop, 3, ann, ann | {"email": moved})
    change(shop, 4, ann | {"email": moved}, None)
    change(shop, 5, None, ann | {"email": moved, "age": 31})
    shop.flush()

    def bring_up():
        with connect(settings, "task") as session:
            ingest(session, settings, users, "run")
            refine(session, settings, users, "run")
        publish_all(settings, [users])

    bring_up()
    before = [row.asDict() for row in rows(tables.current) if row["user_id"] != person]
    assert spark.table(tables.log).where(f"email = '{token(moved)}'").count() >= 1

    done = erase(person, users)
    assert left(done.receipt, users) == []
    assert done.receipt["records"] == {users.name: 5}, "four changes and a tombstone"
    assert sorted(done.receipt["looked_for"]) == [
        *("the subject", "the token of the subject", "token 1", "token 2", "value 1", "value 2")
    ], "and not the name, which somebody else has too"
    assert [row.asDict() for row in rows(tables.current)] == before
    assert [row["user_id"] for row in rows(tables.log)] == [f"{person}2"]
    newest = latest_by_key(settings, topic_of(users))
    assert [json.loads(key)["user_id"] for key in newest] == [f"{person}2"]
    assert done.receipt["until_compaction"].keys() == {f"{topic_of(users)}-0"}
    assert done.receipt["kafka_still_has"] == {f"{users.name}-0": [0, 5]}
    bring_up()
    assert [row["user_id"] for row in rows(tables.log)] == [f"{person}2"]
