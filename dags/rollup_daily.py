"""**Past days.** Rebuild the views and the marts of one whole day (UTC), once the streams have passed its end. You may run it
again at any time.

The data interval is the day, so *Trigger → Backfill* rebuilds any range of days, also those before the start date. Give it
two active runs at most: its pool has two slots, which leaves room for live work. A scheduled run leaves alone what this version
of the code has computed; a backfill and a run by hand compute everything again.

| *Reprocess Behavior* | of the range, it computes |
|---|---|
| *Missing Runs* | the days that have no run yet |
| *Missing and Errored Runs* | these, and the days whose run failed |
| *All Runs* | every day, again |

A day is done once, whatever the behaviour: its run replaces the rows of the day. The tab *Tables* of a run says which day it
computed, which views failed and why, and which streams it waits for.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, dag, task

from lockstep.airflow_marts import mart_tasks, told
from lockstep.airflow_task import give_way, reported
from lockstep.lineage import assets, tables
from lockstep.orchestration import BACKFILL_POOL, defaults


@dag(
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=2,
    default_args=defaults(BACKFILL_POOL),
    tags=["batch", "gold", "marts"],
    description="Rebuild the views and marts of a day",
    doc_md=__doc__,
)
def rollup_daily():
    @task.sensor(mode="reschedule", poke_interval=30, timeout=timedelta(hours=6).total_seconds())
    def day_has_passed(data_interval_end: datetime) -> bool:
        from lockstep import marts_tasks

        with reported() as results:
            return marts_tasks.have_passed(data_interval_end, results)

    @task(
        inlets=assets.of(tables.logs(), tables.mart_sources()),
        outlets=assets.of(tables.views("gold"), tables.marts()),
    )
    def rebuild_day(
        run_id: str, data_interval_start: datetime, data_interval_end: datetime, dag_run: Any
    ) -> dict[str, list[str]]:
        from lockstep import marts_tasks

        again = dag_run.run_type != "scheduled"
        give_way()
        with told() as progress, reported() as results:
            return marts_tasks.rebuild_day(data_interval_start, data_interval_end, run_id, again, results, progress)
        return {}

    rebuilt = rebuild_day()
    day_has_passed() >> rebuilt
    mart_tasks(rebuilt.operator)


rollup_daily()
