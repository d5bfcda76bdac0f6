"""**Marts.** Every five minutes, build the days of the marts that new rows of their sources touch: today, and any day that late
or changed rows belong to. After a run that took long, the next ones are skipped until three times as long has passed.

Readers see the days of a run when all its models and tests have passed, together, and else what they saw before.
`ops.marts` has a row for each span of days that was built.

The task `build` runs dbt once, for all marts. Each mart has two tasks beside it, with their own state and log: `run` is its
model, `test` its tests. *Skipped* is one for which dbt had nothing to do. Clear `run` to build the mart again, with what is made
from it, for the days of the run, or `test` to test it again.
"""

from datetime import UTC, datetime

from airflow.sdk import CronTriggerTimetable, dag, task

from lockstep.airflow_marts import mart_tasks, told
from lockstep.airflow_task import give_way, reported, rest
from lockstep.lineage import assets, tables
from lockstep.orchestration import BACKGROUND_POOL, LIVE_POOL, defaults


@dag(
    schedule=CronTriggerTimetable("*/5 * * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(LIVE_POOL),
    tags=["batch", "marts"],
    description="Build the days that new rows touch",
    doc_md=__doc__,
)
def marts():
    # The others are tasks that a person has cleared, and waits for.
    @task(
        task_id="build",
        pool=BACKGROUND_POOL,
        inlets=assets.of(tables.mart_sources()),
        outlets=assets.of(tables.marts()),
    )
    def build_touched_days(run_id: str) -> list[str]:
        from lockstep import marts_tasks

        with told() as progress:
            rest()
            give_way()
            with reported() as results:
                return marts_tasks.bring_up_marts(run_id, results, progress)
        return []

    mart_tasks(build_touched_days().operator)


marts()
