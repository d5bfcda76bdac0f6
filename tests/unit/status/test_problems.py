"""Each kind of trouble is a problem of the status, in a line of its own: what, since when, what to do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lockstep.airflow_api import Dag, Run
from lockstep.live.progress import Progress
from lockstep.quality.outcomes import GateVerdict
from lockstep.status.lag import PartitionLag
from lockstep.status.model import AirflowStatus, ClockAhead, Disk, Problem, Status, Stream, Unpublished, ViewStatus
from lockstep.status.problems import problems

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
STREAM = Stream("clicks", "clicks", log_end=10, bronze=10, silver=7, duplicates=1, quarantined=1, markers=1)
LIVE = Progress("page_views_per_minute", generation=1, batch=7)
VIEW = ViewStatus(
    "page_views_per_minute",
    9,
    1,
    0,
    until="2026-11-20T10:00:00+00:00",
    windows=5,
    unexplained=0,
    sample=None,
    live=LIVE,
)
RUN = Run("ingest", "run-1", "success", "2026-11-20T10:00:00+00:00")
INGEST = Dag("ingest", paused=False, schedule="* * * * *")
REPLAY = Dag("replay", paused=False)
PASSED = GateVerdict(success=True, checks=14, failed=0, rows=3)
GIGABYTE = 1024**3
ALL_RIGHT = Status(
    [STREAM],
    [VIEW],
    health={"kafka": "healthy", "live": "healthy"},
    airflow=AirflowStatus({"ingest": INGEST, "replay": REPLAY}, {"ingest": RUN}),
    quality={"silver.clicks": PASSED},
    disks={"/home": Disk(100 * GIGABYTE, 50 * GIGABYTE)},
    certificates={"ca.pem": NOW + timedelta(days=90)},
)


def found(**changed: Any) -> list[Problem]:
    return problems(replace(ALL_RIGHT, **changed), NOW)


def lines(**changed: Any) -> list[str]:
    return [str(problem) for problem in found(**changed)]


def live(**changed: Any) -> list[ViewStatus]:
    return [replace(VIEW, live=replace(LIVE, **changed))]


def test_when_all_is_right_there_is_no_problem() -> None:
    running = replace(RUN, state="running", ended_at=None)
    before = replace(VIEW, until=None, windows=0)
    assert lines() == []
    assert lines(views=[VIEW, before], airflow=AirflowStatus({"ingest": INGEST}, {"ingest": running})) == []


@pytest.mark.parametrize("state", ["unhealthy", "starting", "stopped", "failed"])
def test_a_service_that_is_not_healthy_is_named_with_its_log(state: str) -> None:
    assert lines(health={"kafka": "healthy", "connect": state}) == [
        f"connect is {state}: see `lockstep logs connect` and `lockstep doctor`"
    ]


def test_a_disk_that_is_nearly_full_is_named_with_what_is_free() -> None:
    assert lines(disks={"/lake": Disk(100 * GIGABYTE, GIGABYTE)}) == [
        "1,024 MB of 102,400 are free on the disk of /lake: "
        "free some, or lower LOCKSTEP_RETAIN_HOURS and run the DAG maintain"
    ]
    small = Disk(10 * GIGABYTE, GIGABYTE)
    assert lines(disks={"/lake": small}) == [], "a tenth of a small disk is not the last of it"


def test_a_certificate_is_named_two_weeks_before_it_ends() -> None:
    files = {"a.pem": NOW + timedelta(days=15), "b.pem": NOW + timedelta(days=13), "c.pem": NOW - timedelta(days=1)}
    assert lines(certificates=files) == [
        "the certificate in b.pem is valid until 2026-12-03 12:00:00 UTC: renew it",
        "the certificate in c.pem was valid until 2026-11-19 12:00:00 UTC: renew it",
    ]


def test_a_captured_table_that_has_lost_a_column_is_named_with_the_page_that_helps() -> None:
    assert lines(captured={"orders": "public.orders has no column kind"}) == [
        'orders: public.orders has no column kind: see "When its columns change" in docs/operations/captured-tables.md'
    ]


def test_a_paused_dag_is_named_if_it_has_a_schedule() -> None:
    dags = {dag.name: replace(dag, paused=True) for dag in (INGEST, REPLAY)}
    assert lines(airflow=AirflowStatus(dags)) == [
        "DAG ingest is paused, so it does not run: "
        "unpause it on Airflow's page, or with `lockstep airflow dags unpause ingest`"
    ]


def test_a_dag_whose_last_run_failed_is_named_with_the_page_of_the_run() -> None:
    failed = replace(RUN, state="failed")
    assert lines(airflow=AirflowStatus({"ingest": INGEST}, {"ingest": failed})) == [
        "the last run of the DAG ingest failed (since 2026-11-20 10:00:00 UTC): "
        "see the tab Tables of its page in Airflow, /dags/ingest/runs/run-1/plugin/tables"
    ]


def test_a_failed_run_that_a_person_asked_for_is_theirs_to_see() -> None:
    refused = Run("replay", "manual", "failed", "2026-11-20T10:00:00+00:00")
    assert lines(airflow=AirflowStatus({"replay": REPLAY}, {"replay": refused})) == []
    backfill = replace(RUN, state="failed", asked_for=True)
    assert lines(airflow=AirflowStatus({"ingest": INGEST}, {"ingest": backfill})) == []


def test_a_dag_file_that_cannot_be_imported_is_named_with_the_error() -> None:
    broken = AirflowStatus(import_errors={"own.py": "NameError: name 'x' is not defined"})
    assert lines(airflow=broken) == [
        "Airflow cannot import own.py: NameError: name 'x' is not defined: correct the file"
    ]


def test_a_definition_that_cannot_run_is_named_with_its_error() -> None:
    assert lines(broken={"views/a.py": "line 3: SyntaxError: invalid syntax"}) == [
        "views/a.py is left out: line 3: SyntaxError: invalid syntax: correct it, then `lockstep apply`"
    ]


def test_a_stream_without_a_topic_is_named() -> None:
    assert lines(without_topic=["orders"]) == [
        "orders has no topic, so nothing can be produced to it: `lockstep apply` makes it"
    ]


def test_a_topic_that_the_account_may_not_see_is_not_taken_for_one_that_is_missing() -> None:
    assert lines(forbidden=["orders"]) == [
        "the account may not see the topic of orders, so nothing is read from it: "
        "give it the rights DESCRIBE and READ on the topic, as with `lockstep kafka acls`"
    ]


@pytest.mark.parametrize(("taken", "said"), [(3_600_000, "1:00:00"), (2**63 - 1, "by any time")])
def test_a_topic_that_takes_records_of_clocks_too_far_ahead_is_named(taken: int, said: str) -> None:
    assert lines(clocks_ahead=[ClockAhead("clicks", taken, allowed=300_000)]) == [
        f"clicks takes records of clocks that are {said} ahead, and its contract allows 0:05:00: one of them makes the records "
        "of other producers late: `lockstep kafka configs --alter --entity-type topics --entity-name clicks --add-config "
        "message.timestamp.after.max.ms=300000`, or allow as much by max_clock_skew in the contract"
    ]


@pytest.mark.parametrize("silver", [6, 8])
def test_a_stream_with_lost_or_doubled_rows_is_named(silver: int) -> None:
    wrong = replace(STREAM, silver=silver)
    assert lines(streams=[STREAM, wrong]) == [
        "clicks: the rows of bronze and silver do not add up: see `lockstep ledger verify`"
    ]


def test_the_sums_of_a_stream_are_not_judged_while_silver_is_behind_bronze() -> None:
    behind = replace(STREAM, silver=6, lag={"bronze": 0, "silver": 1})
    equally_late = replace(STREAM, silver=6, lag={"bronze": 1, "silver": 1})
    assert found(streams=[behind]) == []
    assert len(found(streams=[equally_late])) == 1


def test_a_transaction_that_hangs_is_named_and_one_that_is_under_way_is_not() -> None:
    times = (NOW - timedelta(hours=2), NOW)
    open_ = [PartitionLag(p, 0, end=9, stable=4, position={}, written_at=at) for p, at in enumerate(times)]
    assert lines(streams=[replace(STREAM, partitions=open_)]) == [
        "5 records of clicks-0 wait behind a transaction that is open (since 2026-11-20 10:00:00 UTC): "
        "see `lockstep kafka transactions find-hanging`"
    ]


def test_a_partition_without_records_that_holds_up_the_others_is_named() -> None:
    others = {0: NOW, 1: NOW - timedelta(minutes=10)}
    assert lines(streams=[replace(STREAM, newest=others)]) == []
    line = (
        "clicks-2 has had no record for a while, and others of its topic have, so views with machines wait for it, and no later "
        "window is final{}: start `live`, which sends heartbeats there if its account has the right WRITE on the topic; or write "
        "to it"
    )
    old, never = ({2: NOW - timedelta(minutes=11)}, {2: None})
    assert lines(streams=[replace(STREAM, newest=others | old)]) == [line.format(" (since 2026-11-20 11:49:00 UTC)")]
    assert lines(streams=[replace(STREAM, newest=others | never)]) == [line.format("")]
    assert lines(streams=[replace(STREAM, newest=dict.fromkeys(range(3)))]) == [], "nobody has written anything"


def test_layers_that_lag_are_named_once_each_with_the_streams_and_views_that_lag_most() -> None:
    orders = replace(STREAM, name="orders", overdue={"bronze": 7, "gold.a": 1, "gold.b": 2})
    views = {f"gold.{name}": 1 for name in "cdef"}
    clicks = replace(STREAM, overdue={"bronze": 12_085, "gold.b": 2} | views)
    bronze, gold = lines(streams=[orders, clicks])
    assert bronze == (
        "bronze is further behind than it may be: clicks (12,085 offsets), orders (7 offsets): "
        "see the runs of the DAG ingest and `lockstep ledger lag`"
    )
    assert gold.startswith("gold is further behind than it may be: b (4 offsets), a (1 offsets)")
    assert "and 1 more: " in gold


def test_live_queries_that_fail_are_named_together_if_they_fail_together() -> None:
    views = [
        replace(VIEW, name=name, live=Progress(name, 1, failures=3, error=error))
        for name, error in (("a", "no state"), ("b", "no state"), ("c", "no topic"))
    ]
    assert lines(views=views) == [
        "live: a, b failed 3 times in a row: no state: see `lockstep logs live` and `lockstep checkpoints verify`",
        "live: c failed 3 times in a row: no topic: see `lockstep logs live` and `lockstep checkpoints verify`",
    ]


def test_a_live_query_that_dropped_rows_is_named() -> None:
    (problem,) = found(views=live(dropped_rows=3))
    assert problem.what.startswith("the live query of page_views_per_minute has dropped 3 rows as too late")
    assert "`lockstep checkpoints reset page_views_per_minute --to earliest" in problem.fix


def test_a_view_that_the_live_service_does_not_run_is_named_while_the_service_is_healthy() -> None:
    new = replace(VIEW, name="new", live=None)
    (problem,) = found(views=[VIEW, new])
    assert problem.what == "the live service does not run new"
    assert [p.key for p in found(views=[new], health={"live": "stopped"})] == ["service:live"]


def test_a_view_whose_rows_nearly_all_come_late_is_named() -> None:
    clock = replace(VIEW, recent={"counted": 5, "ignored": 90, "side_output": 5})
    some = replace(VIEW, recent={"counted": 50, "ignored": 50})
    few = replace(VIEW, recent={"ignored": 20})
    (line,) = lines(views=[clock, some, few])
    assert line.startswith("95 of the newest 100 rows of page_views_per_minute came too late: see late.page_views")


def test_a_shut_gate_is_named_with_its_verdict() -> None:
    shut = GateVerdict(success=False, checks=14, failed=2, rows=3253)
    (line,) = lines(quality={"silver.clicks": PASSED, "silver.orders": shut})
    assert line.startswith(
        "the gate of silver.orders is shut: FAILED 2 of 14 checks on 3,253 rows: see `lockstep quality show silver.orders`"
    )


def test_a_torn_log_is_named_with_the_command_that_repairs_it() -> None:
    bronze, gold = lines(torn={"bronze.clicks": [7], "gold.clicks_per_day": [13, 12]})
    assert bronze.startswith("the log of bronze.clicks is torn, as after a power cut: version 7: ")
    assert "`lockstep ledger repair clicks`" in bronze
    assert "versions 13, 12: " in gold
    assert "`lockstep ledger repair gold.clicks_per_day`, see docs/operations/ledger.md" in gold


def test_days_whose_marts_could_not_be_built_are_named_with_what_failed() -> None:
    (line,) = lines(marts={"2026-11-19": "dbt build failed:\n  holds_daily_orders: Got 2 results"})
    assert line == (
        "the marts of 2026-11-19 could not be built, and readers keep the last good version: dbt build failed: "
        "holds_daily_orders: Got 2 results: correct the rows or the model, see docs/marts.md; they are tried again every five "
        "minutes"
    )


def test_a_view_with_unexplained_windows_is_named_with_a_sample() -> None:
    different = replace(VIEW, unexplained=2, sample="10:00 /cart")
    assert lines(views=[VIEW, different]) == [
        "page_views_per_minute: live and batch differ in 2 windows, such as 10:00 /cart: "
        "see `lockstep reconcile page_views_per_minute`"
    ]


def test_all_problems_are_listed_together_each_with_a_key_of_its_own() -> None:
    every_kind = found(
        health={"kafka": "failed"},
        streams=[replace(STREAM, silver=6)],
        views=[replace(VIEW, unexplained=1, live=replace(LIVE, failures=1, error="x"))],
        quality={"silver.orders": GateVerdict(success=False, checks=1, failed=1, rows=1)},
        without_topic=["a", "b"],
    )
    assert len(every_kind) == len({p.key for p in every_kind}) == 7


def test_a_registry_that_is_away_is_named_with_what_waits() -> None:
    [line] = lines(registry="the schema registry http://registry does not answer")
    assert line.startswith("the schema registry http://registry does not answer")
    assert "all others are read" in line


def test_results_that_are_not_published_are_named_with_the_views_that_wait() -> None:
    since = NOW - timedelta(minutes=20)
    waiting = Unpublished("page_views_per_minute", "page_minutes", ["pages_in_total"], since)
    (problem,) = found(unpublished=[waiting])
    assert (problem.key, problem.since) == ("unpublished:page_minutes", since)
    assert problem.what == (
        "page_views_per_minute has results that are not in its stream page_minutes, and pages_in_total waits for them"
    )
    (of_several,) = found(unpublished=[replace(waiting, readers=["a", "b"])])
    assert of_several.what.endswith(", and a, b wait for them")
    (of_nobody,) = found(unpublished=[replace(waiting, readers=[])])
    assert of_nobody.what.endswith("in its stream page_minutes")
