"""The executor of Airflow's scheduler: Airflow's own ``LocalExecutor``, which knows the parts of a task from each other.

A task that waits for a person, or for a trigger, ends its process, and goes on in another one under the same key. If it goes on
before the scheduler has heard that the first process has ended, the scheduler takes that end for the end of the second one: "the
executor reported that it finished with state success, but its state is running". It fails the task, which is tried again. One
that waits for a person then asks again, what was answered is gone, and its run never ends.

Airflow's executor also starts all of its workers at once. An idle one has 25 MB of its own.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from airflow.executors.local_executor import LocalExecutor
from airflow.utils.state import TaskInstanceState

_ENDS = (TaskInstanceState.SUCCESS, TaskInstanceState.FAILED)


class Executor(LocalExecutor):
    """Tells the scheduler that a task has ended when the last of its processes has (seen in Airflow 3.3.2, its issue 72716)."""

    def start(self) -> None:
        """Start the workers."""
        # By key, how many processes were started and have not ended. One that was killed stays counted. Then the scheduler hears
        # of no success of that key any more, which it does not need: tasks themselves tell Airflow's API how they end.
        self._open: Counter[Any] = Counter()
        # How many workers have a task, or are about to take one. One that was killed stays counted: there may be one too many.
        self._busy = 0
        super().start()

    def _process_workloads(self, workload_list: Sequence[Any]) -> None:
        self._open.update(workload.key for workload in workload_list)
        self._busy += len(workload_list)
        super()._process_workloads(workload_list)  # type: ignore[no-untyped-call]

    def _spawn_workers_with_gc_freeze(self, spawn_number: int) -> None:
        """Start the workers that are missing for the tasks that there are."""
        super()._spawn_workers_with_gc_freeze(min(spawn_number, self._busy - len(self.workers)))  # type: ignore[no-untyped-call]

    def _read_results(self) -> None:
        """As Airflow's own, and count the workers that have become idle."""
        while not self.result_queue.empty():
            key, state, _ = self.result_queue.get()
            self._busy -= state in _ENDS
            self.change_state(key, state)

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
