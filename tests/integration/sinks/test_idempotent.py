"""A worked example: which writes are idempotent by themselves, which need a transaction id, and which an idempotency key."""

import uuid

import pytest

from lockstep import lake
from lockstep.lake import Txn
from lockstep.sinks.direct_sink import DirectSink, DirectSinkConfig, Outcome
from lockstep.sinks.mail import Mail


@pytest.fixture
def table(spark, settings):
    name = f"ops.counter_{uuid.uuid4().hex[:8]}"
    lake.create(spark, settings, name, {"name": "STRING", "amount": "INT"})
    return name


def test_idempotent_writes(spark, settings, table, mailbox):
    def counter():
        return spark.sql(f"SELECT coalesce(sum(amount), 0) AS value FROM {table}").collect()[0].value

    def set_to(value, batch):
        row = spark.createDataFrame([("visits", value)], "name STRING, amount INT")
        lake.merge(row, settings, table, ["name"], "true", Txn(f"set:{table}:1", batch), {})

    def add_one(batch):
        row = spark.createDataFrame([("step", 1)], "name STRING, amount INT")
        lake.append(row, settings, table, Txn(f"add:{table}:1", batch), {})

    set_to(5, batch=1)
    set_to(5, batch=2)
    assert counter() == 5, "set to 5 twice, under whatever id"
    add_one(batch=1)
    add_one(batch=1)
    assert counter() == 6, "one transaction id: once"
    add_one(batch=2)
    assert counter() == 7, "another id: another time"

    sink = DirectSinkConfig(f"mail-{uuid.uuid4().hex[:8]}", Mail)
    letter = [{"alert_id": "welcome-u1", "alert": "welcome"}]
    assert [DirectSink(sink)(letter, batch) for batch in (1, 2)] == [Outcome(sent=1), Outcome(repeated=1)]
    assert len(mailbox.letters) == 1, "one key: one e-mail"
