"""A row of a captured table is erased: its versions, its tokens and their key, and its records in the changelog topic."""

import json
import re
from datetime import datetime, timedelta

import pytest
from tests.support.erased import left, promoted
from tests.support.keys import keys_of, platform_key, token
from tests.support.marts import order
from tests.support.records import change_record
from tests.support.servers import like
from tests.support.shop import START, Shop
from tests.support.slow import slow

from lockstep.catalog import connect
from lockstep.control import erased
from lockstep.control.database import control
from lockstep.control.records import Record, put
from lockstep.definition.tables import Tables
from lockstep.erase import request, run
from lockstep.erase.receipt import KEYS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import latest_by_key
from lockstep.refine import history
from lockstep.refine.silver import refine
from lockstep.serving.changelog import topic_of
from lockstep.serving.publish_changelog import publish_all
from lockstep.stack.postgres import data_dir, post_start


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


def test_a_row_that_was_a_persons_last_does_not_go_back_to_the_one_before(spark, settings, erase, rows, person):
    with like(settings, "orders") as orders:
        shop, tables = Shop(settings, orders), Tables.of(orders)
        bob, carl = f"{person}2", f"{person}3"
        # By order, whose it was, one after the other; None: it was deleted.
        owners = {"1": [bob, person, None], "2": [bob, person], "3": [bob, person, carl, carl], "4": [bob, None]}
        lsn = 0
        for number, of in owners.items():
            before = None
            for owner in of:
                lsn += 1
                after = owner and order(int(number), 1) | {"user_id": owner}
                value = change_record(orders.name, lsn, lsn, before, after).value
                shop.raw(json.dumps(value).encode(), lsn, json.dumps({"order_id": number}), partition=0)
                before = after
        shop.flush()
        with connect(settings, "task") as session:
            ingest(session, settings, orders, "run")
            refine(session, settings, orders, "run")
        publish_all(settings, [orders])

        done = erase(person, orders)

        def state():
            history.define(spark, settings, [orders])
            current = [row["order_id"] for row in rows(tables.current) if not row["_deleted"]]
            log = sorted((row["order_id"], row["_lsn"]) for row in rows(tables.log))
            versions = spark.table(tables.history).where("is_current").collect()
            return current, log, [(row["order_id"], row["user_id"]) for row in versions]

        expected = (["3"], [("3", 6), ("3", 9), ("4", 10), ("4", 11)], [("3", carl)])
        assert left(done.receipt, orders) == []
        assert state() == expected
        assert done.receipt["records"] == {orders.name: 7}, (
            "five of the person's, and what two of her orders were before"
        )
        assert [json.loads(key)["order_id"] for key in latest_by_key(settings, topic_of(orders))] == ["3"]
        promoted(spark, settings, orders)
        assert state() == expected, "after a replay"
        publish_all(settings, [orders])
        assert [json.loads(key)["order_id"] for key in latest_by_key(settings, topic_of(orders))] == ["3"]
        assert erase(person, orders).receipt["records"] == done.receipt["records"]


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
    (key,), (his,) = keys_of(settings, person), keys_of(settings, f"{person}2")
    assert spark.table(tables.log).where(f"email = '{token(key, moved)}'").count() >= 1

    done = erase(person, users)
    assert left(done.receipt, users) == []
    assert done.receipt["records"] == {users.name: 5}, "four changes and a tombstone"
    assert sorted(done.receipt["looked_for"]) == [
        *("the subject", "the token of the subject", "token 1", "token 2", "token 3", "value 1", "value 2")
    ], "and not the name, which somebody else has too; its token is hers alone"
    assert (keys_of(settings, person), keys_of(settings, f"{person}2")) == ([], [his])
    assert [row.asDict() for row in rows(tables.current)] == before
    assert [row["user_id"] for row in rows(tables.log)] == [f"{person}2"]
    newest = latest_by_key(settings, topic_of(users))
    assert [json.loads(key)["user_id"] for key in newest] == [f"{person}2"]
    assert done.receipt["until_compaction"].keys() == {f"{topic_of(users)}-0"}
    assert done.receipt["kafka_still_has"] == {f"{users.name}-0": [0, 5]}
    bring_up()
    assert [row["user_id"] for row in rows(tables.log)] == [f"{person}2"]


class Account:
    """A person's account in the shop. Her name and her addresses are nobody else's, in whatever test."""

    def __init__(self, settings, users, person):
        self.settings, self.users, self.person, self.name = settings, users, person, f"Ann {person}"
        self._shop, self._lsn = Shop(settings, users), 0

    def changes(self, domain="org"):
        self._lsn += 1
        at = {"created_at": START.isoformat(), "updated_at": START.isoformat(), "age": 30}
        row = at | {"user_id": self.person, "name": self.name, "email": self.address(domain)}
        change(self._shop, self._lsn, None, row)
        self._shop.flush()

    def address(self, domain="org"):
        return f"{self.person}@example.{domain}"

    def tokens(self, spark):
        """What silver has for the name and the address, when it has all."""
        with connect(self.settings, "task") as session:
            ingest(session, self.settings, self.users, "run")
            refine(session, self.settings, self.users, "run")
        return {row[n] for row in spark.table(Tables.of(self.users).log).collect() for n in ("name", "email")}


@pytest.fixture
def account(settings, users, person):
    return Account(settings, users, person)


def in_files(settings, key):
    """The files of PostgreSQL's tables in which a key is."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
    files = (data_dir(settings) / "base").glob("*/*")
    return [file.name for file in files if file.is_file() and key in file.read_bytes()]


def test_the_key_of_a_person_is_gone_and_who_comes_back_has_another_one(spark, settings, users, account, erase, person):
    account.changes()
    before = account.tokens(spark)
    (key,) = keys_of(settings, person)
    assert before == {token(key, account.address()), token(key, account.name)}
    assert in_files(settings, key)

    places = erase(person, users).receipt["places"]
    assert (places[KEYS]["looked_at"], places[KEYS]["before"], places[KEYS]["after"]) == (1, 1, 0)
    assert keys_of(settings, person) == []
    assert in_files(settings, key) == []
    (known,) = [e for e in erased.every(settings) if e.subject == token(platform_key(settings), person)]
    assert known.key_destroyed_at is not None
    assert known.key_destroyed_at > known.asked_at
    assert account.tokens(spark) == set(), "bronze has her old records no more, so they make her no new key"
    assert keys_of(settings, person) == []

    account.changes()
    after = account.tokens(spark)
    assert len(after) == 2
    assert not after & before
    again = erase(person, users).receipt
    assert left(again, users) == []
    assert [name for name in again["looked_for"] if name.startswith("token")] == [f"token {n}" for n in (1, 2, 3, 4)]
    assert keys_of(settings, person) == []


@pytest.mark.parametrize("point", [slow("gold-erased"), "key-destroyed"])
def test_an_erasure_that_dies_around_the_end_of_the_key_goes_on(
    spark, settings, users, account, erase, person, monkeypatch, point
):
    account.changes()
    made = account.tokens(spark)
    with monkeypatch.context() as patch:
        patch.setattr(run, "failpoint", lambda name: pytest.fail(name) if name == point else None)
        with pytest.raises(pytest.fail.Exception, match=point):
            erase(person, users)
    assert len(keys_of(settings, person)) == (point == "gold-erased")
    done = erase(person, users).receipt
    assert (left(done, users), keys_of(settings, person)) == ([], [])
    assert {"token 1", "token 2"} <= {*done["looked_for"]}, "though nobody could make them any more"
    (known,) = [e for e in erased.every(settings) if e.subject == token(platform_key(settings), person)]
    assert {*known.found["tokens"]} == made


@pytest.mark.slow
def test_records_that_leaked_take_no_key_with_them(spark, settings, users, account, person):
    account.changes()
    account.changes("com")
    account.tokens(spark)
    keys = keys_of(settings, person)
    asked = request.asked_for(settings, "", [f"{users.topic}:0:0-1"])
    assert run.erase(spark, settings, asked, "bob", "a leak").receipt["records"] == {users.name: 1}
    assert (keys_of(settings, person), len(keys)) == (keys, 1)


@pytest.mark.slow
def test_a_key_that_a_copy_of_the_database_brings_back_is_destroyed_again(
    spark, settings, users, account, erase, person, caplog
):
    def restored(subject, at):
        with control(settings) as connection, connection.cursor() as cursor:
            name = token(platform_key(settings), subject)
            cursor.execute("INSERT INTO subject_keys VALUES (%s, %s, %s)", (name, b"restored", at))

    account.changes()
    account.tokens(spark)
    asked_at = datetime.fromisoformat(erase(person, users).receipt["asked_at"])
    restored(person, asked_at - timedelta(seconds=1))
    restored(f"{person}2", asked_at - timedelta(seconds=1))
    post_start(settings)
    assert (keys_of(settings, person), keys_of(settings, f"{person}2")) == ([], [b"restored"])
    assert "1 keys of persons who were erased" in caplog.text
    restored(person, asked_at + timedelta(seconds=1))
    post_start(settings)
    assert keys_of(settings, person) == [b"restored"], "she came back"


@pytest.mark.slow
def test_keys_that_would_become_one_are_blanked_each_for_itself(spark, settings, users, account, erase, person):
    account.changes()
    account.tokens(spark)
    for number, key in enumerate((person, account.name, account.address()), 1):
        put(settings, f"ops.{users.name}", [Record(key, number, {"of": [key]}, START)])
    done = erase(person, users).receipt
    assert left(done, users) == []
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT key FROM ops_records WHERE table_name = %s", (f"ops.{users.name}",))
        keys = {key for (key,) in cursor.fetchall()}
    assert len(keys) == 3
    assert all(re.fullmatch(rf"\[erased {done['erasure']} [0-9a-f]{{12}}\]", key) for key in keys), keys
