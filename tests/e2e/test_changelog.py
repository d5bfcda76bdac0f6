"""The worked example changelog_topic: a row that is inserted is one keyed change event, and then one row."""

import json
from contextlib import closing

import psycopg2
from deltalake import DeltaTable
from kafka import TopicPartition
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.kafka_clients import consumer

USERS = CONTRACTS["users"]
ALICE = "golden-123"


def changes(settings):
    """What the changelog says of Alice, oldest first."""
    found = []
    with closing(consumer(settings)) as reader:
        partition = TopicPartition(USERS.topic, 0)
        reader.assign([partition])
        reader.seek_to_beginning()
        end = reader.end_offsets([partition])[partition]
        while reader.position(partition) < end:
            records = reader.poll(timeout_ms=500).get(partition, [])
            found += [json.loads(r.value) for r in records if json.loads(r.key) == {"user_id": ALICE}]
    return found


def rows(settings, table):
    """The rows of Alice."""
    every = DeltaTable(lake.path(settings, table)).to_pandas()
    return every[every["user_id"] == ALICE].to_dict("records")


def test_changelog_topic(demo):
    with closing(psycopg2.connect(demo.settings.dsn("shop"))) as shop, shop, shop.cursor() as sql:
        sql.execute(
            "INSERT INTO users VALUES (%s, 'Alice', 'alice@example.org', 30, now(), now()) ON CONFLICT DO NOTHING",
            (ALICE,),
        )
    patiently = Retrying(stop=stop_after_delay(300), wait=wait_fixed(0.5), retry=retry_if_result(lambda seen: not seen))
    (event,) = patiently(changes, demo.settings)
    assert (event["op"], event["before"], event["after"]["name"]) == ("c", None, "Alice")
    # Airflow's next runs take it.
    for table in ("silver.users", "silver.users_changes"):
        (row,) = patiently(rows, demo.settings, table)
        assert (row["age"], len(row["name"])) == (30, 32), "the name is a token"
