"""The executor tells the scheduler that a task has ended when its last process has, and not when an earlier one has."""

import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.executors.base_executor import BaseExecutor
from airflow.executors.local_executor import LocalExecutor
from airflow.models.taskinstancekey import TaskInstanceKey
from airflow.utils.state import TaskInstanceState

from lockstep.airflow_executor import Executor

SUCCESS, FAILED = TaskInstanceState.SUCCESS, TaskInstanceState.FAILED
APPROVE = TaskInstanceKey("erase", "approve", "run", 1, -1)
PLAN = TaskInstanceKey("erase", "plan", "run", 1, -1)


@dataclass
class Worker:
    """A process that takes one task."""

    lives: bool = True

    def is_alive(self) -> bool:
        return self.lives

    def close(self) -> None:
        pass


@dataclass
class Workload:
    """A process of a task, as the scheduler hands it to the executor."""

    key: TaskInstanceKey
    ti: Any = field(default_factory=lambda: SimpleNamespace(priority_weight=1))
    display_name: str = "a task"
    running_state: TaskInstanceState | None = None
    success_state: TaskInstanceState = SUCCESS


def start_worker(executor: LocalExecutor) -> None:
    pid = max(executor.workers, default=0) + 1
    executor.workers[pid] = Worker()  # type: ignore[assignment]


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Executor]:
    """An executor without workers: the tests say what they would."""
    monkeypatch.setattr(LocalExecutor, "_spawn_worker", start_worker)
    executor = Executor(parallelism=4)  # type: ignore[no-untyped-call]
    executor.start()
    yield executor
    gc.unfreeze()


def begin(executor: Executor, key: TaskInstanceKey) -> None:
    executor.queued_tasks[key] = Workload(key)  # type: ignore[assignment]
    executor.trigger_tasks(4)


def taken(executor: Executor, tasks: int = 1) -> None:
    """Workers have taken their tasks."""
    executor._unread_messages.value -= tasks


def end(executor: Executor, key: TaskInstanceKey, state: TaskInstanceState = SUCCESS) -> dict[Any, Any]:
    """A process ends; what the scheduler is told."""
    executor.result_queue.put((key, state, None))
    executor.sync()
    return executor.get_event_buffer()


def test_the_end_of_a_task_is_told(executor: Executor) -> None:
    begin(executor, APPROVE)
    assert end(executor, APPROVE) == {APPROVE: (SUCCESS, None)}


def test_a_task_that_goes_on_before_its_first_process_has_ended_ends_with_its_second(executor: Executor) -> None:
    begin(executor, APPROVE)
    begin(executor, APPROVE)
    assert end(executor, APPROVE) == {}
    assert end(executor, APPROVE) == {APPROVE: (SUCCESS, None)}


def test_a_task_that_goes_on_after_its_first_process_has_ended_ends_twice(executor: Executor) -> None:
    for _ in range(2):
        begin(executor, APPROVE)
        assert end(executor, APPROVE) == {APPROVE: (SUCCESS, None)}


def test_tasks_do_not_wait_for_each_other(executor: Executor) -> None:
    begin(executor, APPROVE)
    begin(executor, PLAN)
    assert end(executor, PLAN) == {PLAN: (SUCCESS, None)}


def test_a_failure_is_told_whichever_process_it_was(executor: Executor) -> None:
    begin(executor, APPROVE)
    begin(executor, APPROVE)
    assert end(executor, APPROVE, FAILED) == {APPROVE: (FAILED, None)}
    assert end(executor, APPROVE) == {APPROVE: (SUCCESS, None)}


def test_no_worker_starts_before_there_is_a_task_for_it(executor: Executor) -> None:
    assert len(executor.workers) == 0
    begin(executor, APPROVE)
    begin(executor, PLAN)
    assert len(executor.workers) == 2


def test_each_task_has_a_worker_of_its_own(executor: Executor) -> None:
    for key in (APPROVE, PLAN):
        begin(executor, key)
        taken(executor)
        end(executor, key)
    assert len(executor.workers) == 2


def test_a_worker_whose_task_airflow_gave_up_is_busy_all_the_same(executor: Executor) -> None:
    begin(executor, APPROVE)
    executor.fail(APPROVE)
    begin(executor, PLAN)
    assert len(executor.workers) == 2


def test_there_are_never_more_workers_than_tasks_that_may_run(executor: Executor) -> None:
    for number in range(6):
        begin(executor, PLAN._replace(map_index=number))
    assert len(executor.workers) == 4


def test_a_task_that_waits_for_a_worker_gets_one_when_another_has_ended(executor: Executor) -> None:
    for number in range(5):
        begin(executor, PLAN._replace(map_index=number))
    taken(executor, 4)
    executor.workers[1].lives = False  # type: ignore[attr-defined]
    executor.sync()
    assert [worker.is_alive() for worker in executor.workers.values()] == [True] * 4


def test_a_task_whose_worker_was_killed_before_it_took_it_gets_another(executor: Executor) -> None:
    begin(executor, APPROVE)
    executor.workers[1].lives = False  # type: ignore[attr-defined]
    executor.sync()
    assert [worker.is_alive() for worker in executor.workers.values()] == [True]


def test_a_worker_ends_after_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    ran, all_began = get_context().SimpleQueue(), get_context().Event()

    def run(*_: Any, **__: Any) -> None:
        # The executor forgets a worker that has ended when the next task begins.
        all_began.wait(timeout=30)
        ran.put(os.getpid())

    monkeypatch.setattr(BaseExecutor, "run_workload", run)
    executor = Executor(parallelism=4)  # type: ignore[no-untyped-call]
    executor.start()
    began = [begin(executor, PLAN._replace(map_index=number)) for number in range(3)]
    workers = list(executor.workers.values())
    all_began.set()
    for worker in workers:
        worker.join(timeout=30)
    assert [worker.exitcode for worker in workers] == [0] * len(began)
    assert len({ran.get() for _ in began}) == 3
    executor.end()
    gc.unfreeze()
