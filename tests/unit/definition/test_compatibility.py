"""What a contract does not keep of its earlier version is named."""

from dataclasses import replace

import pytest
from tests.support.formats import avro_schema, page_views

from lockstep.definition.compatibility import broken_promises, promise

JSON = page_views("views")
AVRO = replace(JSON, format="avro", schema=avro_schema(JSON.columns))


def test_a_contract_keeps_its_own_promise_and_may_grow():
    for contract in (JSON, AVRO):
        assert broken_promises(promise(contract), contract) == []
    wider = {**JSON.columns, "count": "BIGINT", "city": "STRING"}
    grown = replace(AVRO, columns=wider, schema=avro_schema({**wider, "total": "BIGINT"}))
    assert broken_promises(promise(AVRO), grown) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"columns": JSON.columns | {"count": "STRING"}}, "the column count is of type INT, and declared as STRING"),
        (
            {"required": (*JSON.required, "device")},
            "the column device is required now: rows without it go to quarantine",
        ),
        ({"format": "json", "schema": ""}, "its format was avro, and is json"),
        ({"wire_format": "confluent"}, "its wire_format was plain, and is confluent"),
        (
            {"schema": avro_schema(JSON.columns | {"count": "STRING"})},
            "its schema cannot read what the one before has written",
        ),
    ],
)
def test_each_broken_promise_has_a_sentence(change, reason):
    [found] = broken_promises(promise(AVRO), replace(AVRO, **change))
    assert reason in found
