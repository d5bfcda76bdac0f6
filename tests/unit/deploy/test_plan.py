"""The plan has a line for everything in which the project's files differ from what runs, and none for what is the same."""

from dataclasses import replace

import pytest

from lockstep.definition.column_changes import ColumnChanges
from lockstep.deploy.plan import Action, Observed, TableChange, ViewState, plan

SAME = ViewState(started="f1", current="f1", gold="v1", version="v1")
NEW = ViewState(started=None, current=None, gold=None, version="v1")
CHANGED = ViewState(started="f1", current="f2", gold="v1", version="v2")
RUNS = Observed(views={"a": SAME, "b": SAME}, running=frozenset("ab"))


def lines(observed: Observed) -> list[str]:
    return [str(change) for change in plan(observed)]


def test_where_everything_runs_as_the_files_say_there_is_nothing_to_do() -> None:
    assert plan(RUNS) == []
    assert plan(Observed()) == []


def test_a_new_stream_and_its_view_come_with_their_topic_first() -> None:
    observed = replace(
        RUNS,
        missing_topics={"tips": ("tips", 3)},
        views={**RUNS.views, "tips_per_minute": NEW},
        new_services=("monitor",),
    )
    assert lines(observed) == [
        "+ topic tips: of tips, with 3 partitions, kept without end",
        "+ service monitor: is started",
        "+ view tips_per_minute: live and in batch, from the first records of the topics",
    ]


def test_changed_views_share_a_line_and_old_rows_are_named() -> None:
    observed = replace(RUNS, views={"a": CHANGED, "b": replace(CHANGED, gold=None)})
    assert lines(observed) == [
        "~ views a, b: the live query starts again from its checkpoint, if it can",
        "! view a: the rows of before keep their results until a replay: see `lockstep replay plan`",
    ]


def test_a_removed_view_stops_and_a_stream_without_a_contract_is_only_named() -> None:
    observed = replace(RUNS, views={"a": SAME}, without_contract=("clicks",))
    removed, stream = plan(observed)
    assert str(removed) == "- view b: the live query stops; tables and checkpoint stay until `lockstep apply --purge`"
    assert (stream.action, stream.what) == (Action.NAME, "stream clicks")


def test_a_view_that_does_not_run_is_started_where_the_service_has_said_what_runs() -> None:
    assert lines(replace(RUNS, running=frozenset("a"))) == ["+ view b: live from the checkpoint"]
    assert lines(replace(RUNS, running=frozenset())) == [], "before its first report, nobody knows"


def test_what_is_read_by_itself_is_named_last_and_not_made() -> None:
    (change,) = plan(replace(RUNS, followed={"suite silver.tips": "the next gate of the table checks by it"}))
    assert (str(change), change.is_made) == ("= suite silver.tips: the next gate of the table checks by it", False)


@pytest.mark.parametrize(
    "observed",
    [
        replace(RUNS, broken={"views/c.py": "line 3: NameError"}),
        replace(RUNS, topic_differences={"tips": ["it has 5 partitions"]}),
        replace(RUNS, without_contract=("clicks",)),
    ],
)
def test_what_a_person_must_decide_is_named_and_not_made(observed: Observed) -> None:
    assert [change.is_made for change in plan(observed)] == [False]


def test_a_table_that_gets_columns_or_wider_types_says_what_it_costs() -> None:
    changes = ColumnChanges(new={"note": "STRING"}, wider={"n": "BIGINT"}, refused=())
    observed = replace(RUNS, tables={"silver.tips": TableChange(changes, 12_300_000)})
    assert lines(observed) == [
        "~ table silver.tips: gets the column note STRING, null in the rows that are there; n becomes BIGINT; "
        "its files (12.3 MB) are written anew"
    ]
