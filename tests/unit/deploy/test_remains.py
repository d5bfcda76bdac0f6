"""What is left of removed views and streams is theirs alone, and is said before it is removed."""

from lockstep.deploy.plan import Action, purged
from lockstep.deploy.purge import needed
from lockstep.deploy.remains import Kind, Remains, without_owner
from lockstep.live.generation import Generation, Job

VIEW = Remains(
    Kind.VIEW,
    "a",
    tables={"live.a": 1_500_000, "gold.a": 400_000},
    checkpoints={Job("a", 2): 100_000},
    savepoints={"before": 200_000},
    machines=60_000,
    records=1214,
    archived=31,
)
STREAM = Remains(Kind.STREAM, "tips", tables={"bronze.tips": 2_000_000}, topic="tips")


def test_the_tables_of_a_stream_without_a_contract_are_found_and_no_others() -> None:
    there = ["quarantine.old", "quarantine.kept", "silver.old", "silver.old_changes", "bronze.kept", "bronze.old"]
    assert without_owner(there, {"quarantine.kept", "bronze.kept"}) == {
        "old": ["quarantine.old", "silver.old", "silver.old_changes", "bronze.old"]
    }


def test_a_stream_whose_name_ends_like_the_table_of_changes_of_another_is_itself() -> None:
    mine = ["silver.x_changes", "bronze.x_changes"]
    assert without_owner(mine, ()) == {"x_changes": mine}
    assert without_owner(mine, mine) == {}, "its contract is there"


def test_what_a_purge_removes_is_named_with_its_size_and_the_topic_stays() -> None:
    view, stream, topic = purged([VIEW, STREAM])
    assert str(view) == (
        "- view a: removed for ever: live.a (1.5 MB), gold.a (0.4 MB), checkpoint a/2 (0.1 MB), savepoint before (0.2 MB), "
        "saved machines (60 kB), 31 rows of ops.ledger, 1,214 rows of the control database"
    )
    assert (stream.action, stream.what) == (Action.REMOVE, "stream tips")
    assert (topic.action, topic.what) == (Action.NAME, "topic tips")
    assert "stays with its records, because it is yours" in topic.detail


def test_what_somebody_still_needs_is_not_removed() -> None:
    fork = Generation("b", 2, savepoint="a/fork-b")
    assert needed(VIEW, {}, []) == []
    assert needed(VIEW, {"gold.b": "the replay r1"}, [Generation("b", 2, savepoint="ab/one")]) == []
    assert needed(VIEW, {"gold.a": "the replay r1"}, []) == ["gold.a is held by the replay r1: promote or discard it"]
    assert needed(VIEW, {}, [fork]) == ["b begins with the savepoint a/fork-b, and has not begun: let it begin first"]
    assert needed(VIEW, {}, [Generation("a", 2, savepoint="a/before")]) == [], "its own"
