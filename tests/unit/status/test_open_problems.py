"""Who is told of what: one notice for each problem, one when it is over, and nothing in between."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from lockstep.settings import Settings
from lockstep.status import open_problems
from lockstep.status.model import Problem
from lockstep.status.open_problems import Memory, Notice, OpenProblem, Unsent, look

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
KAFKA = Problem("service:kafka", "kafka is stopped", "start it")
GATE = Problem("gate:silver.clicks", "the gate of silver.clicks is shut", "see the data docs")
DATABASE = Problem("unreachable:postgres", "the control database does not answer", "start it")


def watch(*seen: Iterable[Problem], seconds: int = 20) -> list[Notice]:
    """The notices of one look after another."""
    memory: dict[str, OpenProblem] = {}
    notices = []
    for n, problems in enumerate(seen):
        memory, notice = look(memory, problems, NOON + timedelta(seconds=n * seconds))
        notices.append(notice)
    return notices


def told(notices: Iterable[Notice]) -> list[tuple[list[str], list[str]]]:
    """The keys that are new and over, where there are any."""
    return [([p.key for p in n.new], [p.key for p in n.over]) for n in notices if n]


def test_a_problem_that_lasts_is_told_once_with_since_when() -> None:
    notices = watch(*[[KAFKA]] * 10)
    assert told(notices) == [(["service:kafka"], [])]
    (new,) = notices[2].new
    assert (notices.index(notices[2]), new.since) == (2, NOON)


def test_a_problem_that_is_over_is_told_once_more() -> None:
    notices = watch(*[[KAFKA]] * 3, *[[]] * 10)
    assert told(notices) == [(["service:kafka"], []), ([], ["service:kafka"])]


def test_a_problem_is_over_in_the_words_in_which_it_was_told() -> None:
    starting = Problem(KAFKA.key, "kafka is unhealthy", "start it")
    *_, last = (notice for notice in watch([starting], *[[KAFKA]] * 3, [starting], *[[]] * 10) if notice)
    assert [p.what for p in last.over] == [KAFKA.what]


def test_a_service_that_starts_again_at_once_wakes_nobody() -> None:
    assert told(watch([KAFKA], [KAFKA], [], [])) == []


def test_a_problem_that_comes_and_goes_is_told_once() -> None:
    assert told(watch(*[[KAFKA]] * 3, [], [KAFKA], [], [], [KAFKA], [KAFKA])) == [(["service:kafka"], [])]


def test_what_nobody_can_judge_is_not_over() -> None:
    seen = [[GATE]] * 3 + [[DATABASE]] * 20 + [[]] * 5
    assert told(watch(*seen)) == [
        (["gate:silver.clicks"], []),
        (["unreachable:postgres"], []),
        ([], ["unreachable:postgres", "gate:silver.clicks"]),
    ]


def test_the_time_that_a_problem_knows_itself_is_kept() -> None:
    failed = Problem("dag-failed:ingest", "failed", "see", since=NOON - timedelta(hours=1))
    memory, _ = look({}, [failed], NOON)
    assert memory["dag-failed:ingest"].problem.since == NOON - timedelta(hours=1)


@given(st.lists(st.sets(st.sampled_from("abc")), max_size=40))
def test_every_problem_is_told_as_new_before_it_is_told_as_over_and_in_turns(seen: list[set[str]]) -> None:
    notices = watch(*[[Problem(key, key, "") for key in sorted(keys)] for keys in seen])
    for key in "abc":
        changes = [
            kind for n in notices for kind, told in (("new", n.new), ("over", n.over)) if key in {p.key for p in told}
        ]
        assert changes == ["new", "over"] * (len(changes) // 2) + ["new"] * (len(changes) % 2)


def test_a_notice_of_one_problem_says_it_in_its_subject_and_one_of_several_counts_them() -> None:
    since = Problem("service:kafka", "kafka is stopped", "start it", NOON)
    assert Notice(NOON, (since,)).subject == "Lockstep: kafka is stopped"
    assert Notice(NOON, (), (since,)).subject == "Lockstep: over: kafka is stopped"
    several = Notice(NOON, (since, GATE), (since,))
    assert several.subject == "Lockstep: 2 new, 1 over"
    assert several.text.splitlines() == [
        "NEW kafka is stopped (since 2026-11-20 12:00:00 UTC): start it",
        "NEW the gate of silver.clicks is shut: see the data docs",
        "OVER at 2026-11-20 12:00:00 UTC: kafka is stopped (since 2026-11-20 12:00:00 UTC)",
    ]


def test_what_is_remembered_is_read_back_as_it_was(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert open_problems.load(settings) == Memory()
    memory = Memory(
        {"service:kafka": OpenProblem(KAFKA, told=True, gone_at=NOON)},
        {"1: Mail": Unsent((Notice(NOON, (GATE,)),), "no")},
    )
    open_problems.save(settings, memory)
    assert open_problems.load(settings) == memory
