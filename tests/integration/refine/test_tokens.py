"""The tokens of a row are made with the key of its person, which comes to be with the first record and is kept by nobody else."""

import json
import uuid
from dataclasses import replace

import pytest
from tests.support.keys import asked_for_at_once, keys_of, platform_key, token
from tests.support.shop import START

from lockstep.contracts import CONTRACTS
from lockstep.control import subject_keys
from lockstep.definition.registry import VIEWS
from lockstep.refine.parse import parse
from lockstep.testing import Sent, batch_rows

BRONZE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
# The one is a person's value, and the other names the person.
CONTRACT = replace(CONTRACTS["page_views"], pii=("page", "session_id", "user_id"))


@pytest.fixture
def person():
    return f"ann{uuid.uuid4().hex[:10]}"


@pytest.fixture
def tokens(spark):
    """Parses page views, and gives of each its columns."""

    def made(*views, contract=CONTRACT):
        records = [(contract.topic, 0, n, START, None, json.dumps(view).encode(), None) for n, view in enumerate(views)]
        found = parse(spark.createDataFrame(records, BRONZE), contract).orderBy("_offset")
        return [{name: row[name] for name in contract.pii} for row in found.collect()]

    return made


def test_a_value_has_the_token_of_its_person_and_what_names_her_that_of_the_platform(settings, tokens, person):
    found = tokens(
        {"user_id": person, "page": "/a", "session_id": "/a"},
        {"user_id": f"{person}2", "page": "/a"},
        {"page": "/a"},
    )
    platform = platform_key(settings)
    (hers,), (his,) = keys_of(settings, person), keys_of(settings, f"{person}2")
    assert len({hers, his, platform}) == 3
    assert found == [
        {"user_id": token(platform, person), "page": token(hers, "/a"), "session_id": token(hers, "/a")},
        {"user_id": token(platform, f"{person}2"), "page": token(his, "/a"), "session_id": None},
        {"user_id": None, "page": token(platform, "/a"), "session_id": None},
    ]


def test_without_a_subject_the_key_is_the_platforms(settings, tokens, person):
    contract = replace(CONTRACT, subject="", pii=("page",))
    platform = platform_key(settings)
    assert tokens({"user_id": person, "page": "/a"}, contract=contract) == [{"page": token(platform, "/a")}]
    assert keys_of(settings, person) == []


def test_no_worker_goes_on_with_a_key_that_was_destroyed(settings, tokens, person):
    view = {"user_id": person, "page": "/a"}
    first, again = tokens(view), tokens(view)
    assert first == again
    subject_keys.destroy(settings, token(platform_key(settings), person))
    assert keys_of(settings, person) == []
    later = tokens(view)
    assert later[0]["page"] not in {first[0]["page"], None}
    assert later[0]["user_id"] == first[0]["user_id"]


def test_all_who_ask_for_new_keys_at_the_same_time_get_the_same(settings, person):
    subjects = [f"{person}{number}" for number in range(9000)]
    one, other = asked_for_at_once(settings, subjects)
    assert one == other
    assert one.keys() == {*subjects}
    assert {len(key) for key in one.values()} == {32}


def test_the_tests_of_a_project_have_tokens_of_persons_without_a_database(spark, settings, person):
    at = {"updated_at": START.isoformat()}
    users = [at | {"user_id": user, "name": "Ann", "age": 30} for user in (person, f"{person}2")]
    order = {"country": "UK", "kind": "sale", "ordered_at": START.isoformat(), "amount": "1.000"}
    orders = [order | {"order_id": user["user_id"], "user_id": user["user_id"]} for user in users]

    def sent(stream, rows):
        for lsn, row in enumerate(rows):
            source = {"lsn": lsn, "ts_ms": lsn, "sequence": json.dumps([str(lsn)] * 2)}
            yield Sent(stream, 0, lsn, START, {"before": None, "after": row, "op": "c", "source": source})

    rows = batch_rows(
        spark, VIEWS["orders_with_customer"], {"users": [*sent("users", users)], "orders": [*sent("orders", orders)]}
    )
    platform = platform_key(settings)
    keys = {user["user_id"]: token(platform, user["user_id"]).encode() for user in users}
    assert {row["customer"]: row["name"] for row in rows} == {user: token(key, "Ann") for user, key in keys.items()}
    assert keys_of(settings, person) == []
