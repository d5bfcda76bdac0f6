"""A proposed suite: what looks like a promise shuts the gate, and what may be chance only warns."""

from lockstep.quality.distributions import against_history
from lockstep.quality.profile import Facts, proposed


def test_columns_without_nulls_and_a_key_become_promises() -> None:
    facts = {"id": Facts("string", 0), "note": Facts("string", 3), "_offset": Facts("bigint", 0, low=0)}
    assert [*proposed(facts, ("id",))] == [
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}},
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "_offset"}},
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "id"}},
    ]


def test_a_key_of_several_columns_is_unique_as_a_whole() -> None:
    assert [*proposed({}, ("window_start", "page"))] == [
        {"type": "expect_compound_columns_to_be_unique", "kwargs": {"column_list": ["window_start", "page"]}}
    ]


def test_ranges_and_sets_only_warn() -> None:
    facts = {
        "amount": Facts("double", 1, low=0.5),
        "balance": Facts("double", 1, low=-3),
        "kind": Facts("string", 1, values=("a", "b")),
        "same": Facts("string", 1, values=("a",)),
    }
    between = {"column": "amount", "min_value": 0}
    in_set = {"column": "kind", "value_set": ["a", "b"]}
    assert [*proposed(facts, ())] == [
        {"type": "expect_column_values_to_be_between", "kwargs": between, "severity": "warning"},
        {"type": "expect_column_values_to_be_in_set", "kwargs": in_set, "severity": "warning"},
        against_history("kind"),
    ]
