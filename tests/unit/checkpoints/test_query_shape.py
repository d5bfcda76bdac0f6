"""Which differences between a query and its checkpoint are found."""

from lockstep.checkpoints.query_shape import Operator, QueryShape, compare


def shape(sources=("views",), **operators):
    """Operators by name, in order, with the types of their default store."""
    numbered = enumerate(operators.items())
    return QueryShape(list(sources), {n: Operator(name, {"default": types}) for n, (name, types) in numbered})


def test_an_unchanged_query_has_no_differences():
    assert compare(shape(count="key <string>"), shape(count="key <string>")) == []


def test_each_difference_is_named():
    old = shape(count="key <string>, value <bigint>", dedupe="key <string>")
    (types,) = compare(old, shape(count="key <bigint>, value <bigint>", dedupe="key <string>"))
    assert types == (
        "the state of operator 0 (count) is key <bigint>, value <bigint>, and was key <string>, value <bigint> in default"
    )
    (removed,) = compare(old, shape(count="key <string>, value <bigint>"))
    assert removed == "it has no stateful operator dedupe at place 1"
    (added,) = compare(shape(count="k"), shape(count="k", join="k"))
    assert added == "it has a new stateful operator join at place 1"
    (replaced,) = compare(shape(count="k"), shape(dedupe="k"))
    assert replaced == "its stateful operator 0 is dedupe, and was count"
    (sources,) = compare(shape(("views", "views")), shape(("views", "views", "views")))
    assert sources.startswith("it reads 3 sources (views, views, views), and the checkpoint has 2")


def test_a_state_store_that_only_one_of_both_has_is_named():
    one, two = Operator("join", {"left": "k"}), Operator("join", {"left": "k", "right": "k"})
    assert compare(QueryShape([], {0: one}), QueryShape([], {0: two})) == ["operator 0 (join) has state right"]
    assert compare(QueryShape([], {0: two}), QueryShape([], {0: one})) == ["operator 0 (join) has no state right"]


def test_a_changed_number_of_state_partitions_is_named():
    old, new = QueryShape([], {}, 2), QueryShape([], {}, 1)
    assert compare(old, new) == ["its state is in 1 partitions, and the checkpoint's in 2"]
