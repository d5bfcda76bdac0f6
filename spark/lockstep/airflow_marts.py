"""A task of Airflow for each mart, behind the task that runs dbt once for all of them.

A mart's task waits in the triggerer, which costs no process. It takes its log and its state from what the task that runs dbt
says of the mart (``marts.progress``). Cleared, it builds its mart on a worker.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import BaseOperator, TaskGroup, TriggerRule, get_current_context
from airflow.sdk.exceptions import AirflowSkipException
from airflow.triggers.base import (
    BaseTrigger,
    StartTriggerArgs,
    TaskFailedEvent,
    TaskSkippedEvent,
    TaskSuccessEvent,
    TriggerEvent,
)

from lockstep import settings as configuration
from lockstep.airflow_task import reported
from lockstep.lineage import assets, tables
from lockstep.marts.progress import Progress, Reader, State, file_of

log = logging.getLogger(__name__)
_GROUP = "marts"
_EVENTS: dict[State, Any] = {
    State.SUCCESS: TaskSuccessEvent,
    State.FAILED: TaskFailedEvent,
    State.SKIPPED: TaskSkippedEvent,
}
# The triggerer itself goes round once a second. A look at a file costs microseconds, one at Airflow's database milliseconds.
_LOOK_SECONDS, _ASK_EVERY = 1, 15
# Airflow's states of a task that does, or will do, something.
_ACTIVE = {None, "scheduled", "queued", "running", "up_for_retry", "up_for_reschedule", "deferred", "restarting"}
_LAST_WORDS = {
    State.SUCCESS: "It was built, and has passed its tests.",
    State.FAILED: "It failed. When it is repaired, clear this task: it builds the days of this run again.",
    State.SKIPPED: "dbt left it out, because what it is made from failed.",
}
_NOTHING_TO_DO = (
    "dbt had nothing to do for it: no row of its sources is new, or it is a view, which is made again when the project changes, "
    "or a source does not exist yet."
)


class MartTask(BaseOperator):
    """The task of a mart. It starts in the triggerer; only when somebody clears it, it comes to a worker.

    Args:
        mart: its name.
        builder: the task that runs dbt for all.
        made_from: the tasks of the marts that it is made from.
    """

    def __init__(self, *, mart: str, builder: str, made_from: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.mart = mart
        self.start_from_trigger = True
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=f"{MartTrigger.__module__}.{MartTrigger.__qualname__}",
            trigger_kwargs={"mart": mart, "builder": builder, "made_from": made_from},
            next_method="execute",
        )

    def execute(self, context: Any, event: Any = None) -> list[str]:  # noqa: ARG002 - the trigger's
        """Build the mart, and what is made from it, for the days of the run. The tasks of those end with what became of them."""
        from lockstep import tasks

        progress = _progress(context)
        if not progress.spans():
            raise AirflowSkipException("This run has built no days. Clear the task that runs dbt.")
        try:
            with reported() as results:
                return tasks.build_mart(self.mart, context["run_id"], results, progress)
        finally:
            for other in (progress.states.keys() | _dependants(self.mart)) - {self.mart}:
                _end(progress, other)


class MartTrigger(BaseTrigger):
    """Wait until the builder has said how the mart has ended, and log what it says meanwhile.

    If the task was cleared, and nobody else builds the mart, the task builds it itself.
    """

    def __init__(self, mart: str, builder: str, made_from: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.mart = mart
        self.builder = builder
        self.made_from = made_from

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments."""
        arguments = {"mart": self.mart, "builder": self.builder, "made_from": self.made_from}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: how the mart has ended, or that the task shall build it."""
        ti: Any = self.task_instance
        created, is_cleared = _created(ti.id), ti.try_number > 1
        lines = Reader(file_of(configuration.load(), ti.dag_id, ti.run_id))
        looks = 0
        while True:
            # Asked before the file is read: what a task says last, it says before it ends.
            ask = is_cleared if not looks else looks % _ASK_EVERY == 0
            nobody_builds = ask and not await self._is_being_built(ti)
            for line in lines.new():
                if line.at < created or line.mart not in ("", self.mart):
                    continue
                self.log.log(line.level, "%s", line.text)
                if line.state:
                    yield _EVENTS[line.state]()
                    return
            if nobody_builds and is_cleared:
                yield TriggerEvent("cleared")  # type: ignore[no-untyped-call]
                return
            if nobody_builds:
                self.log.warning("The task %s has ended and said nothing of this mart: see its log.", self.builder)
                yield _EVENTS[State.SKIPPED]()
                return
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _is_being_built(self, ti: Any) -> bool:
        """Whether a task works, or will work, that builds this mart: the builder, or one of a mart that it is made from."""
        from asgiref.sync import sync_to_async

        builders = [self.builder, *self.made_from]
        ask = sync_to_async(type(ti).get_task_states)
        states = (await ask(dag_id=ti.dag_id, task_ids=builders, run_ids=[ti.run_id])).get(ti.run_id, {})
        return any(states.get(builder) in _ACTIVE for builder in builders)


def _created(ti_id: Any) -> float:
    """When this try of a task was created (seconds since 1970): its id is a UUID of version 7, whose first 48 bits say it."""
    return (UUID(str(ti_id)).int >> 80) / 1000


def _dependants(mart: str) -> set[str]:
    """The marts that are made from this one, through others too."""
    references, found = tables.mart_references(), {mart}
    while new := {name for name, others in references.items() if found & {*others}} - found:
        found |= new
    return found - {mart}


def mart_tasks(builder: BaseOperator) -> None:
    """Add a task for each mart behind the task that runs dbt, and one that is green if no other is red.

    A DAG file calls it within its DAG.
    """
    made_from = tables.mart_references()
    with TaskGroup(_GROUP, tooltip="Each mart as the one run of dbt has left it. Clear one to build it again."):
        of_mart = {
            mart: MartTask(
                task_id=mart,
                mart=mart,
                builder=builder.task_id,
                made_from=[f"{_GROUP}.{other}" for other in others],
                outlets=assets.of([f"marts.{mart}"]),
                # It is there from the start, and shows what is said. What comes after it in the graph is cleared with it.
                trigger_rule=TriggerRule.ALWAYS,
                # The builder is retried. Who clears a mart sees what becomes of it.
                retries=0,
            )
            for mart, others in made_from.items()
        }
    # A run is as green as its last tasks, and of those a failed mart need not be one.
    complete = EmptyOperator(task_id="complete", trigger_rule=TriggerRule.NONE_FAILED)
    for mart, task in of_mart.items():
        builder >> task >> complete
        for other in made_from[mart]:
            of_mart[other] >> task
    builder >> complete


@contextmanager
def told() -> Iterator[Progress]:
    """In the task that runs dbt: tell the marts' tasks what becomes of them, and how they end when it ends.

    A mart that fails for a reason that lasts, or in the last attempt, does not fail this task: its own task is red.
    """
    context: Any = get_current_context()
    progress, ti = _progress(context), context["ti"]
    is_last = ti.try_number > ti.max_tries
    try:
        yield progress
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


def _end_all(progress: Progress) -> None:
    for mart in tables.mart_references():
        _end(progress, mart)


def _end(progress: Progress, mart: str) -> None:
    state = progress.states.get(mart)
    progress.end(mart, state or State.SKIPPED, _LAST_WORDS[state] if state else _NOTHING_TO_DO)


def _progress(context: Any) -> Progress:
    dag_run = context["dag_run"]
    return Progress(file_of(configuration.load(), dag_run.dag_id, dag_run.run_id))
