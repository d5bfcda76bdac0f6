"""**Silver and gold.** When bronze has new rows, and every five minutes: parse, deduplicate and quarantine them, check silver
against its suites, publish the changelog topics of captured tables, roll up the views, check gold against its suites, and
publish the results that other views read. If the last ingest was more than 20 s ago, `silver` ingests first, unless the DAG
`ingest` is paused: where cycles take longer than a minute, they would begin with old rows.

When a check fails, the task of its gate fails, and the views that read this table wait. The other views go on. The tab *Tables*
of a run has a line for each stream and view: what failed or waits is at the top, with the reason.
"""

from datetime import UTC, datetime
from itertools import pairwise

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import Asset, AssetOrTimeSchedule, CronTriggerTimetable, TriggerRule, dag, task

from lockstep.airflow_task import is_paused, reported
from lockstep.lineage import assets, tables
from lockstep.orchestration import BRONZE, LIVE_POOL, defaults


@dag(
    # By the clock too: a view that is added while bronze is quiet takes what silver has.
    schedule=AssetOrTimeSchedule(timetable=CronTriggerTimetable("*/5 * * * *", timezone="UTC"), assets=[Asset(BRONZE)]),
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args=defaults(LIVE_POOL),
    tags=["live", "silver", "gold", "quality"],
    description="Bronze to silver to gold, with a gate after each",
    doc_md=__doc__,
)
def refine():
    @task(
        inlets=assets.of(tables.topics("events"), tables.topics("changes"), tables.bronze()),
        outlets=assets.of(tables.bronze(), tables.silver()),
    )
    def silver(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        with reported() as results:
            return tasks.refine(run_id, results, ingest_first=not is_paused("ingest"))

    @task(trigger_rule=TriggerRule.ALL_DONE, inlets=assets.of(tables.silver()), outlets=assets.of([tables.GATE]))
    def gate_silver(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        with reported() as results:
            try:
                return tasks.gate("silver", run_id, results)
            finally:
                # Also when a gate is shut: of its table, readers keep what has passed.
                tasks.publish_changelogs()

    @task(trigger_rule=TriggerRule.ALL_DONE, inlets=assets.of(tables.logs()), outlets=assets.of(tables.views("gold")))
    def gold(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        with reported() as results:
            return tasks.roll_up(run_id, results)

    @task(
        trigger_rule=TriggerRule.ALL_DONE,
        inlets=assets.of(tables.views("gold")),
        outlets=assets.of([tables.GATE, *tables.results()]),
    )
    def gate_gold(run_id: str) -> dict[str, int]:
        from lockstep import tasks

        with reported() as results:
            try:
                return tasks.gate("gold", run_id, results)
            finally:
                # Also when a gate is shut: of its view, the results that have passed were published before.
                tasks.publish_view_results()

    tasks = [silver(), gate_silver(), gold(), gate_gold()]
    for before, after in pairwise(tasks):
        before >> after
    # The other tasks run after a failure, too. This last one needs all of them, so that the run fails with any of them.
    tasks >> EmptyOperator(task_id="complete", trigger_rule=TriggerRule.NONE_FAILED)


refine()
