"""The executor of Airflow's scheduler: Airflow's own ``LocalExecutor``, which knows the parts of a task from each other.

A task that waits for a person, or for a trigger, ends its process, and goes on in another one under the same key. If it goes on
before the scheduler has heard that the first process has ended, the scheduler takes that end for the end of the second one: "the
executor reported that it finished with state success, but its state is running". It fails the task, which is tried again. One
that waits for a person then asks again, what was answered is gone, and its run never ends.

Airflow's executor also starts all of its workers at once, and each of them stays. Here, a worker is forked for one task and ends
with it: seven that had run tasks for a while had 90 MB each, most of it pages that the scheduler had written to since.
"""

import gc
from collections import Counter
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any

from airflow.executors.local_executor import LocalExecutor
from airflow.utils.state import TaskInstanceState

_ENDS = (TaskInstanceState.SUCCESS, TaskInstanceState.FAILED)


class _OneEach(SimpleQueue):  # type: ignore[type-arg]
    """A queue that gives each worker, which is a fork with a copy of this, one task, and then tells it to end."""

    _taken = False

    def get(self) -> Any:
        if self._taken:
            return None
        self._taken = True
        return super().get()


class Executor(LocalExecutor):
    """Tells the scheduler that a task has ended when the last of its processes has (seen in Airflow 3.3.2, its issue 72716)."""

    def start(self) -> None:
        """Get ready to start workers; none is started before there is a task for it."""
        # By key, how many processes were started and have not ended. One that was killed stays counted. Then the scheduler hears
        # of no success of that key any more, which it does not need: tasks themselves tell Airflow's API how they end.
        self._open: Counter[Any] = Counter()
        # How many tasks have no worker yet; below zero, so many workers wait for a task.
        self._without_worker = 0
        super().start()
        self.activity_queue = _OneEach(ctx=get_context())
        # What the scheduler has loaded is never looked at for garbage again. Looking writes to every page of it, so that a fork
        # would share none.
        gc.collect()
        gc.freeze()

    def _process_workloads(self, workload_list: Sequence[Any]) -> None:
        self._open.update(workload.key for workload in workload_list)
        self._without_worker += len(workload_list)
        super()._process_workloads(workload_list)  # type: ignore[no-untyped-call]

    def _spawn_workers_with_gc_freeze(self, spawn_number: int) -> None:
        """Start a worker for each task that has none, and one for a task whose worker was killed before it took it."""
        orphaned = self._unread_messages.value > 0 and not self.workers
        for _ in range(min(spawn_number, max(self._without_worker, orphaned))):
            self._spawn_worker()  # type: ignore[no-untyped-call]
            self._without_worker -= 1

    def change_state(self, key: Any, state: Any, info: Any = None, remove_running: bool = True) -> None:
        """Pass on what has become of a task, but for an earlier part of it that has ended well."""
        if state in _ENDS:
            self._open[key] -= 1
            if self._open[key] > 0 and state == TaskInstanceState.SUCCESS:
                self.log.info("%s has gone on before its earlier process ended, which says nothing about it", key)
                return
            if self._open[key] <= 0:
                del self._open[key]
        super().change_state(key, state, info, remove_running)
