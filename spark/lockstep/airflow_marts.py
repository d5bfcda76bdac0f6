"""Two tasks of Airflow for each mart, ``run`` and ``test``, behind the task that runs dbt once for all of them.

They wait in the triggerer (``airflow_mart_trigger``), which costs no process. They take their log and their state from what the
task that runs dbt says of the mart and of its tests (``marts.progress``). Cleared, they build or test their mart on a worker.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import BaseOperator, TaskGroup, TriggerRule, get_current_context
from airflow.sdk.exceptions import AirflowSkipException
from airflow.triggers.base import StartTriggerArgs

from lockstep import settings as configuration
from lockstep.airflow_mart_trigger import GROUP, MartTrigger, active, task_id
from lockstep.airflow_task import reported
from lockstep.lineage import assets, tables
from lockstep.marts.progress import Box, Kind, Progress, State, file_of

log = logging.getLogger(__name__)
_LAST_WORDS = {
    (Kind.RUN, State.SUCCESS): "It was built.",
    (Kind.RUN, State.FAILED): "It failed. When it is repaired, clear this task: it builds the days of this run again.",
    (Kind.RUN, State.SKIPPED): "dbt left it out, because what it is made from failed.",
    (Kind.TEST, State.SUCCESS): "It has passed its tests.",
    (Kind.TEST, State.FAILED): (
        "A test failed. When the rows, the model or the test are repaired, clear this task: it tests the days of this run again, "
        "and builds them before that where they are not published."
    ),
    (Kind.TEST, State.SKIPPED): "dbt left its tests out, because the mart, or what it is made from, failed.",
}
_NOT_PUBLISHED = (
    "It was built, but is not published: readers keep the last good version. The lines above name what failed."
)
_NOTHING_TO_DO = {
    Kind.RUN: (
        "dbt had nothing to do for it: no row of its sources is new, or it is a view, which is made again when the project "
        "changes, or a source does not exist yet."
    ),
    Kind.TEST: "dbt ran no test of it: it was not built, or it has none, or what they read does not exist yet.",
}


class MartTask(BaseOperator):
    """A task of a mart. It starts in the triggerer; only when somebody clears it, it comes to a worker.

    Args:
        box: the mart, and whether the task is that of its model or of its tests.
        builder: the task that runs dbt for all.
        made_from: the marts that it is made from.
    """

    def __init__(self, *, box: Box, builder: str, made_from: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.box = box
        others = [Box(mart, kind) for mart in made_from for kind in Kind]
        if box.kind is Kind.TEST:
            others.append(Box(box.mart, Kind.RUN))
        self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=f"{MartTrigger.__module__}.{MartTrigger.__qualname__}",
            trigger_kwargs={
                "box": [box.mart, box.kind.value],
                "builder": builder,
                "others": [*map(task_id, others)],
            },
            next_method="execute",
        )

    def execute(self, context: Any, event: Any = None) -> list[str]:  # noqa: ARG002 - the trigger's
        """Build the mart and what is made from it, or test it, for the days of the run.

        Tasks that wait for it end with what became of them.

        Raises:
            AirflowSkipException: the run has built no days, or dbt had nothing to do.
            MartsFailed: this failed, or something of which no task that waits is red.
        """
        from lockstep import marts_tasks

        progress = _progress(context)
        if not progress.spans():
            raise AirflowSkipException("This run has built no days. Clear the task that runs dbt.")
        names: list[str] = []
        try:
            with reported() as results:
                names = marts_tasks.build_mart(self.box, context["run_id"], results, progress)
        except Exception as error:
            if not self._others_are_red(context["ti"], error, progress):
                raise
            log.warning("%s", error)
        finally:
            built = {Box(box.mart, Kind.TEST) for box in progress.states if box.kind is Kind.RUN}
            for other in (progress.states.keys() | built | self._follow()) - {self.box}:
                _end(progress, other)
        state = progress.states.get(self.box, State.SKIPPED)
        if state is State.SKIPPED:
            raise AirflowSkipException(_last_words(progress, self.box))
        log.info("%s", _last_words(progress, self.box))
        return names

    def _follow(self) -> set[Box]:
        """The boxes that wait for this one, where it builds what they are about: of its tests, and of what is made from it."""
        if self.box.kind is Kind.TEST:
            return set()
        return {Box(mart, kind) for mart in _dependants(self.box.mart) for kind in Kind}

    def _others_are_red(self, ti: Any, error: Exception, progress: Progress) -> bool:
        """Whether nothing failed but what belongs to other boxes that wait, so that they turn red."""
        if not _is_of_marts(error, progress) or progress.states.get(self.box) is State.FAILED:
            return False
        red = [[*map(task_id, progress.failed[name])] for name in error.failed]  # type: ignore[attr-defined]
        found = ti.get_task_states(dag_id=ti.dag_id, task_ids=[*chain(*red)], run_ids=[ti.run_id])
        return all(active(found.get(ti.run_id, {}), boxes) for boxes in red)


def _dependants(mart: str) -> set[str]:
    """A mart and those that are made from it, through others too."""
    references, found = tables.mart_references(), {mart}
    while new := {name for name, others in references.items() if found & {*others}} - found:
        found |= new
    return found


def mart_tasks(builder: BaseOperator) -> None:
    """Add a group of two tasks for each mart behind the task that runs dbt, and one that is green if no other is red.

    A DAG file calls it within its DAG.
    """
    made_from = tables.mart_references()
    groups: dict[str, TaskGroup] = {}
    # A run is as green as its last tasks, and of those a failed mart need not be one.
    complete = EmptyOperator(task_id="complete", trigger_rule=TriggerRule.NONE_FAILED)
    with TaskGroup(GROUP, tooltip="Each mart as the one run of dbt has left it. Clear a task to do it again."):
        for mart, others in made_from.items():
            with TaskGroup(mart, tooltip="run: the model. test: the tests of dbt that are about it.") as groups[mart]:
                run, test = (_task(Box(mart, kind), builder, others) for kind in Kind)
            builder >> run >> test
            [run, test] >> complete
    for mart, others in made_from.items():
        for other in others:
            groups[other] >> groups[mart]
    builder >> complete


def _task(box: Box, builder: BaseOperator, made_from: list[str]) -> MartTask:
    return MartTask(
        task_id=box.kind.value,
        box=box,
        builder=builder.task_id,
        made_from=made_from,
        outlets=assets.of([f"marts.{box.mart}"]) if box.kind is Kind.RUN else [],
        # It is there from the start, and shows what is said. What comes after it in the graph is cleared with it.
        trigger_rule=TriggerRule.ALWAYS,
        # The builder is retried. Who clears a box sees what becomes of it.
        retries=0,
    )


@contextmanager
def told() -> Iterator[Progress]:
    """In the task that runs dbt: tell the marts' tasks what becomes of them, and how they end when it ends.

    A mart or a test that fails for a reason that lasts, or in the last attempt, does not fail this task: its own task is red.
    """
    context: Any = get_current_context()
    progress, ti = _progress(context), context["ti"]
    is_last = ti.try_number > ti.max_tries
    try:
        yield progress
    except AirflowSkipException as left_out:
        _end_all(progress, str(left_out))
        raise
    except Exception as error:
        if _is_of_marts(error, progress) and (is_last or error.lasting):  # type: ignore[attr-defined]
            log.error("%s", error)
        elif is_last:
            progress.say(f"The task {ti.task_id} has failed: {error}", level=logging.ERROR)
            _end_all(progress)
            raise
        else:
            progress.say(f"The task {ti.task_id} has failed, and is tried again: {error}", level=logging.WARNING)
            raise
    _end_all(progress)


def _is_of_marts(error: Exception, progress: Progress) -> bool:
    """Whether all that failed has a task of its own, and nothing else failed before."""
    failed = getattr(error, "failed", {})
    return bool(failed) and all(progress.failed.get(name) for name in failed) and error.__context__ is None


def _end_all(progress: Progress, words: str | None = None) -> None:
    for mart in tables.mart_references():
        for kind in Kind:
            _end(progress, Box(mart, kind), words)


def _end(progress: Progress, box: Box, words: str | None = None) -> None:
    progress.end(box, progress.states.get(box, State.SKIPPED), words or _last_words(progress, box))


def _last_words(progress: Progress, box: Box) -> str:
    state = progress.states.get(box)
    if state is None:
        return _NOTHING_TO_DO[box.kind]
    if box.kind is Kind.RUN and state is State.SUCCESS and not all(progress.spans().values()):
        return _NOT_PUBLISHED
    return _LAST_WORDS[box.kind, state]


def _progress(context: Any) -> Progress:
    dag_run = context["dag_run"]
    return Progress(file_of(configuration.load(), dag_run.dag_id, dag_run.run_id))
