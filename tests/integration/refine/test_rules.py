"""Spark puts aside what the rules say: the same values as plain Python, in one condition that both layers ask of each row."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from math import nan

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import rules as oracle

from lockstep.contracts import CONTRACTS, Contract
from lockstep.contracts.rules import problems, rule_of
from lockstep.quality.engine import batch_of, run
from lockstep.quality.suites import load
from lockstep.refine.parse import parse
from lockstep.refine.rules import broken_rules, refusals

BRONZE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestamp_type INT, "
    "key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, value BINARY"
)
CONTRACT = Contract(
    name="parcels",
    topic="parcels",
    kind="events",
    columns={"word": "STRING", "share": "DOUBLE", "price": "DECIMAL(12,2)", "count": "INT", "flag": "BOOLEAN"},
    key=("word",),
    unique_id=("word",),
    event_time="at",
)
VALUES = {
    "word": [None, "", "a", "ab", "B", "é1", "a b", "'; DROP TABLE x --"],
    "share": [None, -1.5, -0.0, 0.0, 0.1, 3.0, 1e300, float("inf"), nan],
    "price": [None, Decimal("-0.01"), Decimal("0.00"), Decimal("0.10"), Decimal("9999999999.99")],
    "count": [None, -1, 0, 1, 2147483647],
    "flag": [None, True, False],
}
NUMBERS = st.sampled_from([-1, 0, 1, 3, 0.1, -1.5, 2147483647])
BETWEEN = st.fixed_dictionaries(
    {"min_value": NUMBERS}, optional={"max_value": NUMBERS, "strict_min": st.booleans(), "strict_max": st.booleans()}
)
WORDS = st.sampled_from(["", "a", "B", "é1", "x"])
RULES = st.one_of(
    st.tuples(st.just("expect_column_values_to_not_be_null"), st.sampled_from([*VALUES]), st.just({})),
    st.tuples(st.just("expect_column_values_to_be_null"), st.sampled_from([*VALUES]), st.just({})),
    st.tuples(st.just("expect_column_values_to_be_between"), st.sampled_from(["share", "price", "count"]), BETWEEN),
    st.tuples(
        st.sampled_from(["expect_column_values_to_be_in_set", "expect_column_values_to_not_be_in_set"]),
        st.just("word"),
        st.fixed_dictionaries({"value_set": st.lists(WORDS, min_size=1, max_size=3)}),
    ),
    st.tuples(
        st.just("expect_column_values_to_be_in_set"),
        st.just("flag"),
        st.fixed_dictionaries({"value_set": st.lists(st.booleans(), min_size=1, max_size=2)}),
    ),
    st.tuples(
        st.sampled_from(["expect_column_values_to_match_regex", "expect_column_values_to_not_match_regex"]),
        st.just("word"),
        st.fixed_dictionaries({"regex": st.sampled_from(["^a", "b$", "[0-9]", "^$", "é", "DROP"])}),
    ),
    st.tuples(
        st.just("expect_column_value_lengths_to_be_between"),
        st.just("word"),
        st.fixed_dictionaries({"min_value": st.integers(0, 3)}, optional={"strict_min": st.booleans()}),
    ),
    st.tuples(
        st.just("expect_column_value_lengths_to_equal"),
        st.just("word"),
        st.fixed_dictionaries({"value": st.integers(0, 3)}),
    ),
)


def expectation(kind, column, kwargs):
    return {"type": kind, "kwargs": {"column": column, **kwargs}, "meta": {"quarantine": True}}


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(RULES, min_size=25, max_size=40))
def test_spark_finds_the_values_that_plain_python_finds(spark, cases):
    drawn = [expectation(*case) for case in cases]
    sound = [one for one in drawn if not problems(one, CONTRACT)]
    longest = max(map(len, VALUES.values()))
    rows = [
        tuple(VALUES[name][n] if n < len(VALUES[name]) else None for name in CONTRACT.columns) for n in range(longest)
    ]
    frame = spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in CONTRACT.columns.items()))
    asked = [broken_rules(replace(CONTRACT, rules=(rule_of(one),))).alias(f"rule{n}") for n, one in enumerate(sound)]
    answers = frame.coalesce(1).select(*CONTRACT.columns, *asked).collect()
    for n, one in enumerate(sound):
        column = one["kwargs"]["column"]
        plain = {name: value for name, value in one["kwargs"].items() if name != "column"}
        for answer in answers:
            value = float(answer[column]) if isinstance(answer[column], Decimal) else answer[column]
            expected = None if oracle.holds(one["type"], plain, value) else str(rule_of(one))
            assert answer[f"rule{n}"] == expected, (one, answer[column])


def test_a_row_tells_all_rules_that_it_does_not_meet(spark):
    rules = tuple(
        rule_of(expectation(*case))
        for case in [
            ("expect_column_values_to_be_between", "share", {"min_value": 0}),
            ("expect_column_values_to_not_be_null", "word", {}),
            ("expect_column_values_to_be_between", "count", {"max_value": 5}),
        ]
    )
    frame = spark.createDataFrame(
        [(None, -1.0, None, 1, None)], "word STRING, share DOUBLE, price INT, count INT, flag INT"
    )
    [answer] = frame.select(broken_rules(replace(CONTRACT, rules=rules))).collect()
    assert answer[0] == f"{rules[0]}; {rules[1]}"


def test_a_regular_expression_that_java_does_not_know_is_refused(spark):
    rule = rule_of(expectation("expect_column_values_to_match_regex", "word", {"regex": "(?P<first>a)"}))
    [reason] = refusals(spark, replace(CONTRACT, rules=(rule,)))
    assert str(rule) in reason
    assert "correct it in the suite of silver.parcels" in reason
    assert (
        refusals(
            spark,
            replace(
                CONTRACT,
                rules=(rule_of(expectation(*("expect_column_values_to_match_regex", "word", {"regex": "a"}))),),
            ),
        )
        == []
    )


def change(offset, op, age):
    row = {"user_id": f"u{offset}", "age": age}
    body = {
        "before": row if op == "d" else None,
        "after": None if op == "d" else row,
        "op": op,
        "source": {"lsn": offset + 1, "ts_ms": 0, "snapshot": "false", "sequence": None, "connector": "postgresql"},
    }
    value = json.dumps(body).encode()
    return ("users", 0, offset, datetime(2026, 11, 20, tzinfo=UTC), 0, b"k", None, value)


def test_a_delete_is_never_put_aside_and_the_gate_does_not_ask_it(spark, settings, tmp_path):
    rule = expectation("expect_column_values_to_not_be_null", "age", {})
    contract = replace(CONTRACTS["users"], rules=(rule_of(rule),))
    raw = spark.createDataFrame([change(0, "c", 5), change(1, "c", None), change(2, "d", None)], BRONZE)
    rows = parse(raw, contract)
    assert [row["_reason"] for row in rows.orderBy("_offset").collect()] == [None, str(rule_of(rule)), None]
    good = rows.where("_reason IS NULL").select("user_id", "age", "_deleted")
    own = settings.model_copy(update={"project": tmp_path})
    file = tmp_path / "expectations" / "silver" / "users.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"name": "silver.users", "expectations": [rule]}))
    asked = load(own, "silver.users")["expectations"]
    for frame in (good, good.toPandas()):
        [result] = run(batch_of("changes", frame), asked, {"result_format": "BASIC"})
        assert result["success"], result
        assert result["result"]["element_count"] == 1
    [unasked] = run(batch_of("changes", good), [rule], {"result_format": "BASIC"})
    assert not unasked["success"], "the deleted row has no age"
