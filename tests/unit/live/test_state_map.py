"""Many keys of Spark's state are read and written at once, and each answer belongs to its call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkRuntimeError
from pyspark.serializers import CPickleSerializer
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient
from pyspark.sql.types import IntegerType, LongType, StringType, StructType
from tests.support.state_store import Map

from lockstep.live.state_map import StateMap, _encoded

KEYS = st.tuples(st.integers(0, 9), st.text(max_size=2))
KEYS_OF_SPARK = StructType().add("clock", StringType()).add("slot", LongType()).add("number", IntegerType())


@given(st.lists(st.dictionaries(KEYS, st.none() | st.text(min_size=1)), max_size=10), st.sets(KEYS))
def test_what_was_written_last_is_read(writes, asked):
    state, model = StateMap(Map()), {}
    for values in writes:
        state.write(values)
        model |= values
    assert state.read(sorted(asked)) == {key: model[key] for key in asked if model.get(key) is not None}


def test_more_calls_than_are_sent_at_once_stay_in_step():
    state, values = StateMap(Map()), {(number,): f"text {number}" for number in range(1234)}
    state.write(values)
    assert state.read([*values, (-1,)]) == values


def test_a_call_that_fails_is_no_answer_to_another(monkeypatch):
    spark = Map()
    state = StateMap(spark)
    state.write({(1,): "one", (2,): "two"})
    answer = spark._receive_proto_message
    answers = iter([(1, "the store is closed", b"")])
    monkeypatch.setattr(spark, "_receive_proto_message", lambda: (answer(), next(answers, None))[1] or (0, "", b""))
    with pytest.raises(PySparkRuntimeError, match="1 of 2 calls of the state map failed: the store is closed"):
        state.read([(1,), (2,)])
    monkeypatch.undo()
    assert state.read([(2,)]) == {(2,): "two"}


@given(st.text(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_spark_gets_what_its_own_client_would_send(clock, slot, number):
    client = StatefulProcessorApiClient.__new__(StatefulProcessorApiClient)
    client.pickleSer = CPickleSerializer()
    key = (clock, slot, number)
    assert _encoded(key) == client._serialize_to_bytes(KEYS_OF_SPARK, key)
