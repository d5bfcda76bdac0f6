"""The trigger of a mart's tasks: it waits in Airflow's triggerer for what a run of dbt says of one box, and logs it."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any
from uuid import UUID

from airflow.triggers.base import BaseTrigger, TaskFailedEvent, TaskSkippedEvent, TaskSuccessEvent, TriggerEvent

from lockstep import settings as configuration
from lockstep.marts.progress import Box, Kind, Reader, State, file_of

# The group of all marts' tasks.
GROUP = "marts"
_EVENTS: dict[State, Any] = {
    State.SUCCESS: TaskSuccessEvent,
    State.FAILED: TaskFailedEvent,
    State.SKIPPED: TaskSkippedEvent,
}
# The triggerer itself goes round once a second, and a look at a file costs microseconds. To ask Airflow costs milliseconds of
# three processes, for each of some thirty tasks, and only tells of a builder that died without a word.
_LOOK_SECONDS, _ASK_EVERY = 1, 60
# Airflow's states of a task that does, or will do, something.
_ACTIVE = {None, "scheduled", "queued", "running", "up_for_retry", "up_for_reschedule", "deferred", "restarting"}


def task_id(box: Box) -> str:
    """The id of a box's task."""
    return f"{GROUP}.{box.mart}.{box.kind}"


def active(states: Mapping[str, Any], tasks: Collection[str]) -> bool:
    """Whether one of these tasks works, or will work.

    Args:
        states: Airflow's, by task.
    """
    return any(states.get(task) in _ACTIVE for task in tasks)


class MartTrigger(BaseTrigger):
    """Wait until somebody has said how the box has ended, and log what is said of it meanwhile.

    If the task was cleared, and nobody else builds or tests its mart, the task does it itself.

    Args:
        box: the mart, and which of its tasks it is.
        builder: the task that runs dbt for all.
        others: the tasks that, cleared, build or test the mart too.
    """

    def __init__(self, box: list[str], builder: str, others: list[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        mart, kind = box
        self.box = Box(mart, Kind(kind))
        self.builder = builder
        self.others = others

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments."""
        arguments = {"box": [*map(str, self.box)], "builder": self.builder, "others": self.others}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: how the box has ended, or that the task shall do it."""
        ti: Any = self.task_instance
        created, is_cleared = _created(ti.id), ti.try_number > 1
        lines = Reader(file_of(configuration.load(), ti.dag_id, ti.run_id))
        looks = 0
        while True:
            # Asked before the file is read: what a task says last, it says before it ends.
            ask = is_cleared if not looks else looks % _ASK_EVERY == 0
            nobody_builds = ask and not await self._is_being_built(ti)
            for line in lines.new():
                if line.at < created or line.box not in (None, self.box):
                    continue
                self.log.log(line.level, "%s", line.text)
                if line.state:
                    yield _EVENTS[line.state]()
                    return
            if nobody_builds and is_cleared:
                yield TriggerEvent("cleared")  # type: ignore[no-untyped-call]
                return
            if nobody_builds:
                self.log.warning("The task %s has ended and said nothing of this: see its log.", self.builder)
                yield _EVENTS[State.SKIPPED]()
                return
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _is_being_built(self, ti: Any) -> bool:
        """Whether the builder, or another task that builds or tests this mart, works or will work."""
        from asgiref.sync import sync_to_async

        builders = [self.builder, *self.others]
        ask = sync_to_async(type(ti).get_task_states)
        states = await ask(dag_id=ti.dag_id, task_ids=builders, run_ids=[ti.run_id])
        return active(states.get(ti.run_id, {}), builders)


def _created(ti_id: Any) -> float:
    """When this try of a task was created (seconds since 1970): its id is a UUID of version 7, whose first 48 bits say it."""
    return (UUID(str(ti_id)).int >> 80) / 1000
