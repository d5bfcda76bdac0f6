"""The demonstration of share groups: two workers on one partition, release, rejection, and redelivery when a worker dies."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shop.readers.child_processes import ChildProcesses
from shop.readers.share import LOCK_SECONDS, prepare_group
from shop.readers.topics import own_topic, send

if TYPE_CHECKING:
    from lockstep.settings import Settings

TASKS = ["plain"] * 10 + ["again", "poison"] + ["plain"] * 10 + ["hang"] + ["plain"] * 10


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration has shown.

    Args:
        done: by task, how often it was accepted.
        shared: by worker, how many tasks of the one partition it was handed.
        deliveries: by kind of task, how often its record was handed out.
        hung, taken_over: the worker that hung and was killed, and the one that did its task.
        seconds: from the kill to the redelivery.
    """

    done: dict[int, int]
    shared: dict[str, int]
    deliveries: dict[str, int]
    hung: str
    taken_over: str
    seconds: float


def demonstrate(settings: "Settings", print_line: Callable[[str], None]) -> DemoResult:
    """Run it on a topic and a group of its own, in 10 to 30 seconds.

    Raises:
        DemonstrationFailed: a step did not end in time.
    """
    with own_topic(settings, 1) as topic, ChildProcesses("shop.readers.share") as workers:
        prepare_group(settings, topic)
        for name in ("wanda", "will"):
            workers.start(name, topic, topic, name)
        send(settings, topic, 1, tasks(), one_by_one=True)
        workers.wait_until(lambda: bool(workers.reports_of("hangs")), "a worker hangs")
        hung = str(workers.reports_of("hangs")[0]["worker"])
        rest = len(TASKS) - 2
        workers.wait_until(
            lambda: len(workers.reports_of("accept")) == rest, "the other worker does all but the hanging task"
        )
        workers.kill(hung)
        killed_at = time.monotonic()
        workers.wait_until(
            lambda: bool(workers.reports_of("accept", task="hang")), "the task of the dead worker is handed out again"
        )
        seconds = time.monotonic() - killed_at
        reports = [report for report in workers.reports if "n" in report]
    result = DemoResult(
        done=dict(Counter(report["n"] for report in reports if report["event"] == "accept")),
        shared=dict(Counter(report["worker"] for report in reports)),
        deliveries={kind: max(report["deliveries"] for report in reports if report["task"] == kind) for kind in TASKS},
        hung=hung,
        taken_over=next(
            report["worker"] for report in reports if (report["event"], report["task"]) == ("accept", "hang")
        ),
        seconds=seconds,
    )
    for sentence in sentences(result):
        print_line(sentence)
    return result


def tasks() -> Iterator[dict[str, Any]]:
    """The tasks with consecutive numbers. They belong to one user, and so to one partition."""
    for n, task in enumerate(TASKS):
        yield {"user_id": 0, "n": n, "task": task}


def sentences(result: DemoResult) -> Iterator[str]:
    """The result in words."""
    yield f"One partition, two workers: {result.shared} tasks were handed out. A consumer group would leave one of them idle."
    yield f"Number of deliveries: {result.deliveries}. `again` was released once; `poison` was rejected for good."
    when = f"{result.seconds:.1f} s later (its lock: {LOCK_SECONDS} s)"
    yield f"{result.hung} hung on a task and was killed; {result.taken_over} got the task {when}."
    yield f"{len(result.done)} of {len(TASKS)} tasks are done, each {max(result.done.values())} time; the other one is poison."
