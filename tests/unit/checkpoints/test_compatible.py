"""Which differences between a query and its checkpoint are named."""

from lockstep.checkpoints.compatible import Verdict, compare


def described(sources=("views",), **operators):
    """Operators by name, in order, with the schema of their default store."""
    stores = {
        n: {"name": name, "stores": {"default": {"partitions": 2, "schema": schema}}}
        for n, (name, schema) in enumerate(operators.items())
    }
    return {"sources": list(sources), "operators": stores, "conf": {}}


def test_what_is_the_same_can_resume():
    assert compare(described(count="key <string>"), described(count="key <string>")) == []


def test_each_difference_is_named():
    old = described(count="key <string>, value <bigint>", dedupe="key <string>")
    (schema,) = compare(old, described(count="key <bigint>, value <bigint>", dedupe="key <string>"))
    assert schema == (
        "the state of operator 0 (count) is key <bigint>, value <bigint>, and was key <string>, value <bigint> in default"
    )
    (gone,) = compare(old, described(count="key <string>, value <bigint>"))
    assert gone == "it has no stateful operator dedupe at place 1"
    (new,) = compare(described(count="k"), described(count="k", join="k"))
    assert new == "it has a new stateful operator join at place 1"
    (other,) = compare(described(count="k"), described(dedupe="k"))
    assert other == "its stateful operator 0 is dedupe, and was count"
    (sources,) = compare(described(("views", "views")), described(("views", "views", "views")))
    assert sources.startswith("it reads 3 sources (views, views, views), and the checkpoint has 2")


def test_a_verdict_says_which_generation_to_begin():
    assert "Begin generation 4: `lockstep checkpoints reset a --to earliest`" in str(Verdict("a", 3, ("it differs",)))
